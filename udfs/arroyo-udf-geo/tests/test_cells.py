"""H3 cells, beside the library called for each."""

import h3.api.basic_int as h3
import numpy as np
import pyarrow as pa
import pytest
from arroyo_udf_geo.cells import (
    _is_cell,
    geo_cell,
    geo_cell_boundary,
    geo_cell_disk,
    geo_cell_from_text,
    geo_cell_parent,
    geo_cell_point,
    geo_cell_resolution,
    geo_cell_text,
)
from arroyo_udf_geo.polygons import geo_in_polygon
from hypothesis import given
from hypothesis import strategies as st

LATS = st.floats(-90, 90) | st.sampled_from([-90.0, 90.0])
LONS = st.floats(-180, 180) | st.sampled_from([-180.0, 180.0])
RESOLUTIONS = st.integers(0, 15)
PENTAGONS = st.builds(
    lambda resolution, place: sorted(h3.get_pentagons(resolution))[place], RESOLUTIONS, st.integers(0, 11)
)
CELLS = st.builds(h3.latlng_to_cell, LATS, LONS, RESOLUTIONS) | PENTAGONS


def ints(values):
    return pa.array(values, pa.int64())


@given(st.lists(st.tuples(LATS, LONS, RESOLUTIONS), min_size=1, max_size=10))
def test_cells_equal_those_of_the_library(rows):
    lats, lons, resolutions = zip(*rows, strict=True)
    found = geo_cell(pa.array(lats, pa.float64()), pa.array(lons, pa.float64()), ints(resolutions)).to_pylist()
    assert found == [h3.latlng_to_cell(lat, -180.0 if lon == 180 else lon, each) for lat, lon, each in rows]


@given(st.lists(st.tuples(CELLS, RESOLUTIONS), max_size=10))
def test_parents_equal_those_of_the_library(rows):
    rows = [(cell, min(resolution, h3.get_resolution(cell))) for cell, resolution in rows]
    cells, resolutions = ints([cell for cell, _ in rows]), ints([each for _, each in rows])
    assert geo_cell_parent(cells, resolutions).to_pylist() == [h3.cell_to_parent(*row) for row in rows]
    assert geo_cell_resolution(cells).to_pylist() == [h3.get_resolution(cell) for cell, _ in rows]


@given(st.lists(CELLS | st.builds(lambda cell, bit: cell ^ (1 << bit), CELLS, st.integers(0, 62)), max_size=20))
def test_a_number_is_a_cell_where_the_library_says_so(numbers):
    expected = [h3.is_valid_cell(number) for number in numbers]
    assert _is_cell(np.array(numbers, dtype=np.int64)).tolist() == expected


@given(st.lists(st.none() | st.tuples(CELLS, st.integers(0, 2)), max_size=6))
def test_disks_equal_those_of_the_library(rows):
    cells, rings = (ints([row and row[place] for row in rows]) for place in (0, 1))
    expected = [None if row is None else sorted(h3.grid_disk(*row)) for row in rows]
    assert geo_cell_disk(cells, rings).to_pylist() == expected


@given(st.lists(st.none() | CELLS, max_size=6))
def test_text_is_hexadecimal_and_leads_back(cells):
    texts = geo_cell_text(ints(cells))
    assert texts.to_pylist() == [None if cell is None else f"{cell:x}" for cell in cells]
    assert geo_cell_from_text(texts).to_pylist() == cells


@given(CELLS)
def test_the_middle_of_a_cell_lies_in_it(cell):
    point = geo_cell_point(ints([cell]))
    lat, lon = point.field("lat"), point.field("lon")
    assert geo_cell(lat, lon, geo_cell_resolution(ints([cell]))).to_pylist() == [cell]


@given(st.floats(-80, 80), LONS, st.integers(2, 12))
def test_the_boundary_holds_the_middle_also_across_the_antimeridian(lat, lon, resolution):
    cell = ints([h3.latlng_to_cell(lat, lon, resolution)])
    point = geo_cell_point(cell)
    assert geo_in_polygon(point.field("lat"), point.field("lon"), geo_cell_boundary(cell)).to_pylist() == [True]


def test_a_known_cell():
    cell = geo_cell(pa.array([37.7752702151959]), pa.array([-122.418307270836]), ints([9]))
    assert geo_cell_text(cell).to_pylist() == ["8928308280fffff"]
    assert geo_cell_text(geo_cell_parent(cell, ints([5]))).to_pylist() == ["85283083fffffff"]


def test_nulls_and_no_rows():
    cell = h3.latlng_to_cell(1, 1, 5)
    assert geo_cell(pa.array([1.0, None]), pa.array([1.0, 1.0]), ints([5, 5])).to_pylist() == [cell, None]
    assert geo_cell_parent(ints([None, cell]), ints([3, None])).to_pylist() == [None, None]
    for function in (geo_cell_boundary, geo_cell_point, geo_cell_resolution, geo_cell_text):
        assert function(ints([None])).to_pylist() == [None]
        assert len(function(ints([]))) == 0
    assert len(geo_cell_disk(ints([]), ints([]))) == 0
    empty = pa.array([], pa.float64())
    assert len(geo_cell(empty, empty, ints([]))) == 0


@pytest.mark.parametrize("number", [0, -1, 5, 1 << 62])
def test_what_is_no_cell_is_named(number):
    for function in (geo_cell_boundary, geo_cell_point, geo_cell_resolution, geo_cell_text):
        with pytest.raises(ValueError, match=f"{number} is not an H3 cell"):
            function(ints([number]))


@pytest.mark.parametrize("text", ["", "xyz", "-1", "f" * 16, "0"])
def test_what_is_no_text_of_a_cell_is_named(text):
    with pytest.raises(ValueError, match="is not an H3 cell"):
        geo_cell_from_text(pa.array([text]))


def test_settings_that_are_not_possible_are_named():
    cell = ints([h3.latlng_to_cell(1, 1, 5)])
    with pytest.raises(ValueError, match="resolution 16 is not from 0 to 15"):
        geo_cell(pa.array([1.0]), pa.array([1.0]), ints([16]))
    with pytest.raises(ValueError, match="has resolution 5: no parent of resolution 6"):
        geo_cell_parent(cell, ints([6]))
    with pytest.raises(ValueError, match="-1 rings are not from 0 to 100"):
        geo_cell_disk(cell, ints([-1]))
