"""H3 cells: a grid of hexagons of nearly equal area, in 16 resolutions; each cell is one 64-bit number.

The library has no functions over arrays: what computes with coordinates is one call for each row or distinct cell.
What is in the bits of the number needs no call.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.udf import udf
from arroyo_udf_geo.points import POINT, Mask, null_mask, read_points

Numbers = npt.NDArray[np.int64]

FINEST = 15
#: More rings than these are 30,000 cells for one row.
MOST_RINGS = 100

# The bits of a cell: mode 1, resolution, base cell, and three for each resolution: all set where it is finer.
_MODE_SHIFT, _RESERVED_SHIFT, _RESOLUTION_SHIFT, _BASE_SHIFT, _DIGIT_BITS = 59, 56, 52, 45, 3
_CELL_MODE, _UNUSED = 1, 7
BASE_CELLS = 122
_PENTAGONS = np.array([4, 14, 24, 38, 49, 58, 63, 72, 83, 97, 107, 117])


@udf(arguments=[pa.float64(), pa.float64(), pa.int64()], returns=pa.int64())
def geo_cell(lat: pa.Array, lon: pa.Array, resolution: pa.Array) -> pa.Array:
    """The H3 cell of a place at a resolution from 0 (1100 km from edge to edge) to 15 (1 m); 9 is about 350 m."""
    points = read_points(lat, lon)
    is_null = points.is_null | null_mask(resolution)
    resolutions = _read_resolutions(resolution, is_null)
    rows = np.flatnonzero(~is_null)
    cells = np.zeros(len(points), dtype=np.int64)
    cells[rows] = list(
        map(_h3().latlng_to_cell, points.lats[rows].tolist(), points.lons[rows].tolist(), resolutions[rows].tolist())
    )
    return pa.array(cells, mask=is_null)


@udf(arguments=[pa.int64(), pa.int64()], returns=pa.int64())
def geo_cell_parent(cell: pa.Array, resolution: pa.Array) -> pa.Array:
    """The coarser cell that a cell belongs to; itself at its own resolution."""
    is_null = null_mask(cell, resolution)
    cells, wanted = _read_cells(cell, is_null), _read_resolutions(resolution, is_null)
    own = (cells >> _RESOLUTION_SHIFT) & 15
    is_finer = ~is_null & (wanted > own)
    if is_finer.any():
        row = int(np.flatnonzero(is_finer)[0])
        raise ValueError(f"cell {cells[row]:x} has resolution {own[row]}: no parent of resolution {wanted[row]}")
    unused = (np.int64(1) << (_DIGIT_BITS * (FINEST - wanted))) - 1
    parents = (cells & ~(np.int64(15) << _RESOLUTION_SHIFT)) | (wanted << _RESOLUTION_SHIFT) | unused
    return pa.array(parents, mask=is_null)


@udf(arguments=[pa.int64()], returns=pa.int64())
def geo_cell_resolution(cell: pa.Array) -> pa.Array:
    """The resolution of a cell."""
    is_null = null_mask(cell)
    return pa.array((_read_cells(cell, is_null) >> _RESOLUTION_SHIFT) & 15, mask=is_null)


@udf(arguments=[pa.int64()], returns=POINT)
def geo_cell_point(cell: pa.Array) -> pa.Array:
    """The middle of a cell."""
    return _per_distinct(cell, lambda each: dict(zip(("lat", "lon"), _h3().cell_to_latlng(each), strict=True)), POINT)


@udf(arguments=[pa.int64()], returns=pa.string())
def geo_cell_boundary(cell: pa.Array) -> pa.Array:
    """The hexagon (or pentagon) as WKT, which `geo_in_polygon` and maps take. Longitudes beyond 180 keep it whole."""
    return _per_distinct(cell, _boundary, pa.string())


@udf(arguments=[pa.int64(), pa.int64()], returns=pa.list_(pa.int64()))
def geo_cell_disk(cell: pa.Array, rings: pa.Array) -> pa.Array:
    """The cell and its neighbours up to this many steps away, in ascending order: 7 cells for one ring."""
    is_null = null_mask(cell, rings)
    counts = np.where(is_null, 0, pc.fill_null(rings, 0).to_numpy())
    is_wrong = (counts < 0) | (counts > MOST_RINGS)
    if is_wrong.any():
        raise ValueError(f"{counts[is_wrong][0]} rings are not from 0 to {MOST_RINGS}")
    pairs = np.stack([_read_cells(cell, is_null), counts], axis=1)
    distinct, codes = np.unique(pairs, axis=0, return_inverse=True)
    found = [_disk(each, count) for each, count in distinct.tolist()]
    return pa.array(found, pa.list_(pa.int64())).take(pa.array(codes.reshape(-1), mask=is_null))


@udf(arguments=[pa.int64()], returns=pa.string())
def geo_cell_text(cell: pa.Array) -> pa.Array:
    """The number in hexadecimal, as other tools write it: '8928308280fffff'."""
    return _per_distinct(cell, lambda each: f"{each:x}", pa.string())


@udf(arguments=[pa.string()], returns=pa.int64())
def geo_cell_from_text(text: pa.Array) -> pa.Array:
    """The cell that other tools write in hexadecimal."""
    encoded = text.dictionary_encode()
    cells = pa.array([_parse(each) for each in encoded.dictionary.to_pylist()], pa.int64())
    _read_cells(cells, null_mask(cells))
    return cells.take(encoded.indices)


@cache
def _h3() -> Any:
    import h3.api.basic_int  # type: ignore[import-untyped]

    return h3.api.basic_int


def _per_distinct(cell: pa.Array, function: Callable[[int], Any], kind: pa.DataType) -> pa.Array:
    encoded = cell.dictionary_encode()
    cells = _read_cells(encoded.dictionary, null_mask(encoded.dictionary))
    return pa.array([function(each) for each in cells.tolist()], kind).take(encoded.indices)


def _disk(cell: int, rings: int) -> list[int]:
    return sorted(_h3().grid_disk(cell, rings)) if cell else []


def _boundary(cell: int) -> str:
    corners = _h3().cell_to_boundary(cell)
    lons = [lon for _, lon in corners]
    # A cell across the antimeridian has corners at both ends of the map: move those of the west behind the east.
    shift = 360 if max(lons) - min(lons) > 180 else 0
    ring = [f"{lon + shift if lon < 0 else lon} {lat}" for lat, lon in [*corners, corners[0]]]
    return f"POLYGON (({', '.join(ring)}))"


def _parse(text: str) -> int:
    try:
        number = int(text, 16)
    except ValueError:
        number = -1
    if not 0 < number < 1 << 63:
        raise ValueError(f"{text!r} is not an H3 cell: 15 hexadecimal digits")
    return number


def _read_cells(cell: pa.Array, is_null: Mask) -> Numbers:
    """Raises `ValueError` for the first number that is not a cell; 0 stands for null."""
    cells: Numbers = np.where(is_null, 0, pc.fill_null(cell, 0).to_numpy())
    is_wrong = ~is_null & ~_is_cell(cells)
    if is_wrong.any():
        raise ValueError(f"{cells[is_wrong][0]} is not an H3 cell")
    return cells


def _is_cell(cells: Numbers) -> Mask:
    """Whether each number is a cell, by the rules of the format: the library would need a call for each."""
    base = (cells >> _BASE_SHIFT) & 127
    resolutions = (cells >> _RESOLUTION_SHIFT) & 15
    is_cell: Mask = ((cells >> _MODE_SHIFT) == _CELL_MODE) & ((cells >> _RESERVED_SHIFT) & 7 == 0) & (base < BASE_CELLS)
    leading = np.zeros(len(cells), dtype=np.int64)
    for resolution in range(1, FINEST + 1):
        digits = (cells >> (_DIGIT_BITS * (FINEST - resolution))) & 7
        is_used = resolution <= resolutions
        is_cell &= is_used == (digits != _UNUSED)
        leading = np.where((leading == 0) & is_used, digits, leading)
    # Pentagons have five neighbours: the direction 1 is missing there.
    is_cell &= ~(np.isin(base, _PENTAGONS) & (leading == 1))
    return is_cell


def _read_resolutions(resolution: pa.Array, is_null: Mask) -> Numbers:
    resolutions: Numbers = np.where(is_null, 0, pc.fill_null(resolution, 0).to_numpy())
    is_wrong = (resolutions < 0) | (resolutions > FINEST)
    if is_wrong.any():
        raise ValueError(f"resolution {resolutions[is_wrong][0]} is not from 0 to {FINEST}")
    return resolutions
