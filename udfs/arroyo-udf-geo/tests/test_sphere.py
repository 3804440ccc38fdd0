"""Distances and directions, beside plain Python and by their own laws."""

import math

import pyarrow as pa
import pytest
from arroyo_udf_geo.points import geo_is_valid
from arroyo_udf_geo.sphere import EARTH_RADIUS_M, geo_bearing, geo_destination, geo_distance_m
from hypothesis import given
from hypothesis import strategies as st

LATS = st.floats(-90, 90) | st.sampled_from([-90.0, 0.0, 90.0])
LONS = st.floats(-180, 360) | st.sampled_from([-180.0, 0.0, 180.0, 360.0])
PLACES = st.tuples(LATS, LONS)
HALF_ROUND_M = math.pi * EARTH_RADIUS_M


def run(function, *rows):
    columns = zip(*rows, strict=True)
    return function(*(pa.array(list(column), pa.float64()) for column in columns)).to_pylist()


def vector(lat, lon):
    lat, lon = math.radians(lat), math.radians(lon)
    return math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat)


def dot(one, two):
    return sum(a * b for a, b in zip(one, two, strict=True))


def distance(here, there):
    """By the angle between two vectors: another way than haversine, exact also for antipodes."""
    one, two = vector(*here), vector(*there)
    cross = math.dist((0, 0, 0), [one[i - 2] * two[i - 1] - one[i - 1] * two[i - 2] for i in range(3)])
    return EARTH_RADIUS_M * math.atan2(cross, dot(one, two))


def bearing(here, there):
    """By the parts of the other place's vector that point to the east and to the north of here."""
    lat, lon = here
    north = vector(lat + 90, lon)
    east = (-math.sin(math.radians(lon)), math.cos(math.radians(lon)), 0.0)
    two = vector(*there)
    return math.degrees(math.atan2(dot(two, east), dot(two, north))) % 360


@given(st.lists(st.tuples(LATS, LONS, LATS, LONS), min_size=1, max_size=10))
def test_distances_equal_the_angle_between_vectors(rows):
    for row, metres in zip(rows, run(geo_distance_m, *rows), strict=True):
        # Haversine loses digits close to the antipode: a few decimetres of 20,000 km.
        assert metres == pytest.approx(distance(row[:2], row[2:]), rel=1e-9, abs=0.5)


@given(PLACES, PLACES)
def test_distance_is_the_same_both_ways_and_zero_to_itself(here, there):
    there_and_back = run(geo_distance_m, (*here, *there), (*there, *here), (*here, *here))
    assert there_and_back[0] == pytest.approx(there_and_back[1], abs=1e-6)
    assert there_and_back[2] == 0
    assert 0 <= there_and_back[0] <= HALF_ROUND_M * (1 + 1e-12)


@pytest.mark.parametrize(
    ("row", "metres"),
    [
        ((52.5200, 13.4050, 48.8566, 2.3522), 877_464),
        ((0, 179.5, 0, -179.5), EARTH_RADIUS_M * math.radians(1)),
        ((0, 179.5, 0, 180.5), EARTH_RADIUS_M * math.radians(1)),
        ((90, 0, 90, 123), 0),
        ((90, 0, -90, 77), HALF_ROUND_M),
        ((0, 0, 0, 180), HALF_ROUND_M),
    ],
)
def test_known_distances(row, metres):
    assert run(geo_distance_m, row)[0] == pytest.approx(metres, abs=1)


@pytest.mark.parametrize(
    ("row", "degrees"),
    [
        ((0, 0, 1, 0), 0),
        ((0, 0, 0, 1), 90),
        ((1, 0, 0, 0), 180),
        ((0, 0, 0, -1), 270),
        ((0, 179, 0, -179), 90),
        ((0, -179, 0, 179), 270),
        ((5, 5, 5, 5), 0),
    ],
)
def test_known_bearings(row, degrees):
    assert run(geo_bearing, row)[0] == pytest.approx(degrees, abs=0.1)


@given(PLACES, PLACES)
def test_bearings_equal_those_of_vectors(here, there):
    metres, degrees = run(geo_distance_m, (*here, *there))[0], run(geo_bearing, (*here, *there))[0]
    # To itself and to its antipode every direction is the right one.
    if 1 < metres < HALF_ROUND_M - 1000:
        assert (degrees - bearing(here, there) + 180) % 360 - 180 == pytest.approx(0, abs=1e-3)


@given(PLACES, PLACES)
def test_a_bearing_is_below_360(here, there):
    assert 0 <= run(geo_bearing, (*here, *there))[0] < 360


@given(st.floats(-89, 89), LONS, st.floats(0, 359), st.floats(1, 1e6))
def test_a_destination_is_as_far_and_in_the_direction_that_was_asked(lat, lon, bearing, metres):
    (there,) = run(geo_destination, (lat, lon, bearing, metres))
    assert -90 <= there["lat"] <= 90
    assert -180 <= there["lon"] < 180
    assert run(geo_distance_m, (lat, lon, there["lat"], there["lon"]))[0] == pytest.approx(metres, rel=1e-6, abs=1e-3)
    if metres > 100 and abs(there["lat"]) < 89:
        turned = (run(geo_bearing, (lat, lon, there["lat"], there["lon"]))[0] - bearing + 180) % 360 - 180
        assert turned == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize("function", [geo_bearing, geo_destination, geo_distance_m])
def test_a_null_in_any_argument_gives_null(function):
    rows = [[1.0, 2.0, 3.0, 4.0] for _ in range(5)]
    for place in range(4):
        rows[place][place] = None
    results = run(function, *rows)
    assert results[:4] == [None] * 4
    assert results[4] is not None
    assert len(function(*[pa.array([], pa.float64())] * 4)) == 0


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((90.5, 0, 0, 0), r"latitude 90\.5 is not from -90 to 90 degrees"),
        ((0, -181, 0, 0), r"longitude -181\.0 is not from -180 to 360 degrees"),
        ((0, 0, math.nan, 0), "latitude nan"),
        ((0, 0, 0, math.inf), "longitude inf"),
    ],
)
def test_a_place_that_is_not_on_earth_is_named(row, message):
    with pytest.raises(ValueError, match=message):
        run(geo_distance_m, (1, 1, 1, 1), row)


@given(st.lists(st.tuples(st.none() | st.floats(), st.none() | st.floats()), max_size=8))
def test_valid_places_are_those_that_other_functions_accept(rows):
    lats, lons = (pa.array([row[place] for row in rows], pa.float64()) for place in (0, 1))
    for (lat, lon), is_valid in zip(rows, geo_is_valid(lats, lons).to_pylist(), strict=True):
        if lat is None or lon is None:
            assert is_valid is None
            continue
        try:
            run(geo_distance_m, (lat, lon, 0, 0))
        except ValueError:
            assert not is_valid
        else:
            assert is_valid
