"""Points in polygons, beside counting how often a ray crosses the edges."""

import math

import pyarrow as pa
import pytest
from arroyo_udf_geo.polygons import geo_in_polygon
from hypothesis import assume, given
from hypothesis import strategies as st

SQUARE = "POLYGON ((0 0, 10 0, 10 10, 0 10, 0 0))"
SQUARE_JSON = '{"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}'
RING = "POLYGON ((0 0, 10 0, 10 10, 0 10, 0 0), (4 4, 6 4, 6 6, 4 6, 4 4))"
PACIFIC = "POLYGON ((170 -10, 190 -10, 190 10, 170 10, 170 -10))"
PACIFIC_WEST = "POLYGON ((-190 -10, -170 -10, -170 10, -190 10, -190 -10))"
PACIFIC_CUT = (
    "MULTIPOLYGON (((170 -10, 180 -10, 180 10, 170 10, 170 -10)), ((-180 -10, -170 -10, -170 10, -180 10, -180 -10)))"
)


def contains(places, polygons):
    lats, lons = (pa.array([place and place[axis] for place in places], pa.float64()) for axis in (0, 1))
    return geo_in_polygon(lats, lons, pa.array(polygons, pa.string())).to_pylist()


def star(radii):
    """A polygon around (0, 0) that may bend inwards, but does not cross itself."""
    step = 2 * math.pi / len(radii)
    return [(radius * math.cos(step * i), radius * math.sin(step * i)) for i, radius in enumerate(radii)]


def is_inside(x, y, corners):
    crossings = 0
    for (x1, y1), (x2, y2) in zip(corners, [*corners[1:], corners[0]], strict=True):
        if (y1 > y) != (y2 > y) and x < (x2 - x1) * (y - y1) / (y2 - y1) + x1:
            crossings += 1
    return crossings % 2 == 1


def is_near_an_edge(x, y, corners):
    for (x1, y1), (x2, y2) in zip(corners, [*corners[1:], corners[0]], strict=True):
        length = math.dist((x1, y1), (x2, y2))
        along = max(0, min(1, ((x - x1) * (x2 - x1) + (y - y1) * (y2 - y1)) / length**2))
        if math.dist((x, y), (x1 + along * (x2 - x1), y1 + along * (y2 - y1))) < 1e-6:
            return True
    return False


@given(
    st.lists(st.floats(1, 50), min_size=3, max_size=9),
    st.lists(st.tuples(st.floats(-60, 60), st.floats(-60, 60)), min_size=1, max_size=10),
)
def test_inside_is_an_odd_number_of_crossings(radii, places):
    corners = star(radii)
    assume(not any(is_near_an_edge(lon, lat, corners) for lat, lon in places))
    text = "POLYGON ((" + ", ".join(f"{x!r} {y!r}" for x, y in [*corners, corners[0]]) + "))"
    expected = [is_inside(lon, lat, corners) for lat, lon in places]
    assert contains(places, [text] * len(places)) == expected


@pytest.mark.parametrize("polygon", [SQUARE, SQUARE_JSON, RING])
def test_edges_and_corners_belong_to_a_polygon(polygon):
    places = [(0, 0), (10, 5), (5, 0), (3, 3), (10.1, 5), (-0.1, 0)]
    assert contains(places, [polygon] * len(places)) == [True, True, True, True, False, False]


def test_a_hole_is_outside_and_its_edge_is_not():
    assert contains([(5, 5), (4, 4), (4, 5)], [RING] * 3) == [False, True, True]


@pytest.mark.parametrize("polygon", [PACIFIC, PACIFIC_WEST, PACIFIC_CUT])
def test_a_polygon_may_cross_the_antimeridian(polygon):
    places = [(0, 175), (0, 180), (0, -180), (0, -175), (0, 185), (0, 165), (0, -165), (0, 0), (11, 180)]
    assert contains(places, [polygon] * len(places)) == [True] * 5 + [False] * 4


def test_a_pole_is_a_line_on_the_map():
    arctic = "POLYGON ((-180 66, 180 66, 180 90, -180 90, -180 66))"
    assert contains([(90, 12), (90, -180), (66, 180), (65, 0)], [arctic] * 4) == [True, True, True, False]


def test_each_row_may_have_its_own_polygon_and_nulls_give_null():
    places = [(5, 5), (5, 5), (5, 5), None, (0, 185)]
    assert contains(places, [SQUARE, RING, None, SQUARE, PACIFIC]) == [True, False, None, None, True]
    assert contains([], []) == []
    assert contains([(5, 5)], [None]) == [None]
    assert contains([None, (5, 5)], [SQUARE, SQUARE]) == [None, True]


@pytest.mark.parametrize(
    ("polygon", "message"),
    [
        ("SQUARE", "'SQUARE' is neither WKT nor GeoJSON"),
        ("{}", "is neither WKT nor GeoJSON"),
        ("POINT (1 2)", "is a Point, not a Polygon or a MultiPolygon"),
        ("POLYGON ((0 0, 1 1, 1 0, 0 1, 0 0))", "is not valid: Self-intersection"),
        ("", "is neither WKT nor GeoJSON"),
        ("POLYGON ((" + "x" * 200, r"'POLYGON \(\(x{70}\.\.\.' is neither"),
    ],
)
def test_what_is_no_polygon_is_named(polygon, message):
    with pytest.raises(ValueError, match=message):
        contains([(1, 1), (2, 2)], [polygon, polygon])
