"""Geohashes: short texts for rectangles of a grid; a prefix is the larger rectangle around it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.udf import udf
from arroyo_udf_geo.grid import BITS, LONGEST, Numbers, Words, axis_bits, bounds_of, interleave, separate, steps_of
from arroyo_udf_geo.points import POINT, Mask, null_mask, point_array, read_points

_ALPHABET = np.frombuffer(b"0123456789bcdefghjkmnpqrstuvwxyz", dtype=np.uint8)
_VALUES = np.full(256, 255, dtype=np.uint8)
_VALUES[_ALPHABET] = np.arange(32)
#: How far the word of a geohash is shifted for each of its characters, the first one first.
_SHIFTS = np.arange(LONGEST - 1, -1, -1, dtype=np.uint64) * np.uint64(5)
#: North first, then clockwise: the steps in longitude and in latitude.
_AROUND = ((0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1))


@udf(arguments=[pa.float64(), pa.float64(), pa.int64()], returns=pa.string())
def geo_hash(lat: pa.Array, lon: pa.Array, precision: pa.Array) -> pa.Array:
    """The geohash of a place with this many characters, 1 (5000 km) to 12 (4 cm); 6 is about 1 km by 600 m."""
    points = read_points(lat, lon)
    is_null = points.is_null | null_mask(precision)
    lengths = np.where(is_null, 0, pc.fill_null(precision, 1).to_numpy())
    is_wrong = ~is_null & ((lengths < 1) | (lengths > LONGEST))
    if is_wrong.any():
        raise ValueError(f"precision {lengths[is_wrong][0]} is not from 1 to {LONGEST} characters")
    words = interleave(steps_of(points.lons, -180), steps_of(points.lats, -90))
    return _texts(words, lengths, is_null)


@udf(arguments=[pa.string()], returns=POINT)
def geo_hash_point(geohash: pa.Array) -> pa.Array:
    """The middle of the rectangle that a geohash stands for."""
    words, lengths, is_null = _read(geohash)
    lons, lats = separate(words)
    lon_bits, lat_bits = axis_bits(lengths)
    return point_array(
        bounds_of(lats, -90) + 90.0 / np.exp2(lat_bits), bounds_of(lons, -180) + 180.0 / np.exp2(lon_bits), is_null
    )


@udf(arguments=[pa.string()], returns=pa.list_(pa.string()))
def geo_hash_neighbours(geohash: pa.Array) -> pa.Array:
    """The geohashes around one, of its length: north first, then clockwise; there are five at a pole, else eight."""
    words, lengths, is_null = _read(geohash)
    lons, lats = separate(words)
    lon_bits, lat_bits = axis_bits(lengths)
    steps = np.array(_AROUND, dtype=np.int64)
    columns = ((lons >> (BITS - lon_bits))[:, None] + steps[:, 0]) % (1 << lon_bits)[:, None]
    rows = (lats >> (BITS - lat_bits))[:, None] + steps[:, 1]
    exists = (rows >= 0) & (rows < (1 << lat_bits)[:, None]) & ~is_null[:, None]
    owners = np.nonzero(exists)[0]
    found = interleave(columns[exists] << (BITS - lon_bits)[owners], rows[exists] << (BITS - lat_bits)[owners])
    texts = _texts(found, lengths[owners], np.zeros(len(owners), dtype=np.bool_))
    offsets = np.concatenate([[0], np.cumsum(exists.sum(axis=1))]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), texts, mask=pa.array(is_null))


def _texts(words: Words, lengths: Numbers, is_null: Mask) -> pa.Array:
    codes = ((words[:, None] >> _SHIFTS) & np.uint64(31)).astype(np.uint8)
    data = _ALPHABET[codes[np.arange(LONGEST) < lengths[:, None]]]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    validity = pa.array(~is_null).buffers()[1]
    return pa.StringArray.from_buffers(len(words), pa.py_buffer(offsets), pa.py_buffer(data), validity)


def _read(geohash: pa.Array) -> tuple[Words, Numbers, Mask]:
    """The word, the length and the nulls of geohashes; what lacks to the longest is zero, and so is a null."""
    is_null = null_mask(geohash)
    column = pc.fill_null(geohash, "0").cast(pa.large_binary())
    offsets = np.frombuffer(column.buffers()[1], dtype=np.int64)[column.offset : column.offset + len(column) + 1]
    lengths = np.diff(offsets)
    _check(geohash, (lengths >= 1) & (lengths <= LONGEST))
    places = offsets[:-1, None] + np.arange(LONGEST)
    is_there = np.arange(LONGEST) < lengths[:, None]
    data: npt.NDArray[np.uint8] = np.frombuffer(column.buffers()[2] or b"", dtype=np.uint8)
    codes = np.zeros(places.shape, dtype=np.uint8)
    codes[is_there] = _VALUES[data[places[is_there]]]
    _check(geohash, np.asarray((codes < 32).all(axis=1)))
    words = np.bitwise_or.reduce(codes.astype(np.uint64) << _SHIFTS, axis=1)
    return words, lengths, is_null


def _check(geohash: pa.Array, is_good: Mask) -> None:
    if not is_good.all():
        wrong = geohash[int(np.flatnonzero(~is_good)[0])].as_py()
        raise ValueError(f"{wrong!r} is not a geohash: 1 to {LONGEST} of the characters {_ALPHABET.tobytes().decode()}")
