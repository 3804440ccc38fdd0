"""Geohashes, beside the textbook's halving."""

import pyarrow as pa
import pytest
from arroyo_udf_geo.geohash import geo_hash, geo_hash_neighbours, geo_hash_point
from hypothesis import given
from hypothesis import strategies as st

ALPHABET = "0123456789bcdefghjkmnpqrstuvwxyz"
LATS = st.floats(-90, 90) | st.sampled_from([-90.0, -45.0, 0.0, 45.0, 89.99999999999999, 90.0])
LONS = st.floats(-180, 179.9999) | st.sampled_from([-180.0, -135.0, 0.0, 45.0, 179.99999999999997])
HASHES = st.text(ALPHABET, min_size=1, max_size=12)


def box(geohash):
    """South, west, north, east, by halving: every bound is exact in a double."""
    sides = [[-180.0, 180.0], [-90.0, 90.0]]
    for place, bit in enumerate("".join(f"{ALPHABET.index(character):05b}" for character in geohash)):
        axis = sides[place % 2]
        axis[bit == "0"] = (axis[0] + axis[1]) / 2
    return sides[1][0], sides[0][0], sides[1][1], sides[0][1]


def halve(lat, lon, precision):
    sides, bits = [[-180.0, 180.0], [-90.0, 90.0]], ""
    for place in range(5 * precision):
        axis, value = sides[place % 2], (lon, lat)[place % 2]
        middle = (axis[0] + axis[1]) / 2
        bits += "01"[value >= middle]
        axis[value < middle] = middle
    return "".join(ALPHABET[int(bits[start : start + 5], 2)] for start in range(0, len(bits), 5))


def encode(lats, lons, precisions):
    return geo_hash(
        pa.array(lats, pa.float64()), pa.array(lons, pa.float64()), pa.array(precisions, pa.int64())
    ).to_pylist()


@given(st.lists(st.tuples(LATS, LONS, st.integers(1, 12)), min_size=1, max_size=10))
def test_encoding_equals_halving(rows):
    assert encode(*zip(*rows, strict=True)) == [halve(*row) for row in rows]


def test_places_on_every_bound_of_a_row_of_cells_are_in_the_cell_that_begins_there():
    lons = [-180 + place * 360 / 2**15 for place in range(2**15)]
    assert encode([10.0] * len(lons), lons, [6] * len(lons)) == [halve(10.0, lon, 6) for lon in lons]


@given(st.lists(st.none() | HASHES, max_size=8))
def test_the_point_is_the_middle_of_the_box(hashes):
    for geohash, point in zip(hashes, geo_hash_point(pa.array(hashes, pa.string())).to_pylist(), strict=True):
        if geohash is None:
            assert point is None
            continue
        south, west, north, east = box(geohash)
        assert point == {"lat": (south + north) / 2, "lon": (west + east) / 2}


@given(HASHES)
def test_encoding_the_point_gives_the_geohash_again(geohash):
    point = geo_hash_point(pa.array([geohash]))[0].as_py()
    assert encode([point["lat"]], [point["lon"]], [len(geohash)]) == [geohash]


@given(st.lists(st.none() | HASHES, max_size=8))
def test_neighbours_are_the_boxes_around(hashes):
    found = geo_hash_neighbours(pa.array(hashes, pa.string())).to_pylist()
    for geohash, neighbours in zip(hashes, found, strict=True):
        if geohash is None:
            assert neighbours is None
            continue
        south, west, north, east = box(geohash)
        expected = []
        for column, row in [(0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1)]:
            lat = (south + north) / 2 + row * (north - south)
            lon = ((west + east) / 2 + column * (east - west) + 180) % 360 - 180
            if -90 < lat < 90:
                expected.append(halve(lat, lon, len(geohash)))
        assert neighbours == expected
        assert len(set(neighbours)) in (5, 8)


def test_known_geohashes():
    assert encode([57.64911, 42.605], [10.40744, -5.603], [11, 5]) == ["u4pruydqqvj", "ezs42"]
    assert encode([90, -90, 90], [180, -180, 360], [4, 4, 4]) == ["bpbp", "0000", "upbp"]


def test_neighbours_wrap_around_the_antimeridian_and_end_at_the_poles():
    assert geo_hash_neighbours(pa.array(["8", "z"])).to_pylist() == [
        ["b", "c", "9", "3", "2", "r", "x", "z"],
        ["b", "8", "x", "w", "y"],
    ]


@pytest.mark.parametrize("geohash", ["", "a", "u4i", "u4pruydqqvj0z", "ü", "U4"])
def test_what_is_no_geohash_is_named(geohash):
    for function in (geo_hash_point, geo_hash_neighbours):
        with pytest.raises(ValueError, match=f"'{geohash}' is not a geohash: 1 to 12 of the characters"):
            function(pa.array(["u4", None, geohash]))


@pytest.mark.parametrize("precision", [0, -1, 13])
def test_a_precision_that_is_not_possible_is_named(precision):
    with pytest.raises(ValueError, match=f"precision {precision} is not from 1 to 12"):
        encode([1, 1], [1, 1], [5, precision])


def test_nulls_no_rows_and_slices():
    assert encode([1, None, 1, 1], [1, 1, None, 1], [1, 1, 1, None]) == ["s", None, None, None]
    assert encode([], [], []) == []
    whole = pa.array(["x", "u4pr", None, "ezs42"])
    for function in (geo_hash_point, geo_hash_neighbours):
        assert len(function(pa.array([], pa.string()))) == 0
        assert function(whole.slice(1)).to_pylist() == function(whole).to_pylist()[1:]
