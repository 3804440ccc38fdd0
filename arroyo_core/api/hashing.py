"""The stable 64-bit hash of keys, and the one function from hash to subtask.

The hash is the same on every platform, version and process, because state files are laid out
by it; `tests/unit/api/test_hashing.py` publishes test vectors. Its definition:

- an integer, boolean, date, time, timestamp or duration is its value as a 64-bit two's-complement word;
- a float is its IEEE double, with -0.0 as 0.0 and one NaN;
- a string or binary value is its bytes in little-endian words of 8, zero-padded, then its length;
- a decimal is its unscaled value in two little-endian words (four for decimal256);
- a struct is its fields; null is a constant, whatever its type;
- words are folded into the state with `mix(state XOR word)`, where `mix` is splitmix64's finaliser,
  column after column, beginning with 0 for no columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.ids import range_size

Hashes = npt.NDArray[np.uint64]

_INCREMENT = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_NULL = np.uint64(0xA5A5A5A55A5A5A5A)
_SEED = np.uint64(0x5851F42D4C957F2D)


def hash_columns(columns: Sequence[pa.Array]) -> Hashes:
    """One hash per row over all columns; no columns at all is the caller's to handle (hash 0)."""
    if not columns:
        raise ValueError("no columns to hash")
    state = np.full(len(columns[0]), _SEED, dtype=np.uint64)
    for column in columns:
        state = _fold_column(state, column)
    return state


def hash_batch(batch: pa.RecordBatch, keys: Sequence[str]) -> Hashes:
    """One hash per row over the key columns; without keys every row hashes to 0."""
    if not keys:
        return np.zeros(batch.num_rows, dtype=np.uint64)
    return hash_columns([batch.column(key) for key in keys])


def hash_bytes(data: bytes) -> int:
    """The hash of one binary value, as `hash_columns` computes it."""
    return int(hash_columns([pa.array([data], pa.binary())])[0])


def subtasks_of(hashes: Hashes, parallelism: int) -> npt.NDArray[np.int32]:
    """The subtask that owns each hash; the inverse of `arroyo_core.ids.key_range`."""
    if parallelism == 1:
        return np.zeros(len(hashes), dtype=np.int32)
    return (hashes // np.uint64(range_size(parallelism))).astype(np.int32)


def is_hashable(kind: pa.DataType) -> bool:
    """Whether values of this type can be keys."""
    if pa.types.is_struct(kind):
        return all(is_hashable(field.type) for field in kind)
    if pa.types.is_dictionary(kind):
        return is_hashable(kind.value_type)
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_temporal(kind)
        or pa.types.is_decimal(kind)
        or _is_bytes(kind)
        or pa.types.is_null(kind)
    )


def _fold(state: Hashes, words: Hashes) -> Hashes:
    mixed = state ^ words
    mixed += _INCREMENT
    mixed ^= mixed >> np.uint64(30)
    mixed *= _FIRST
    mixed ^= mixed >> np.uint64(27)
    mixed *= _SECOND
    mixed ^= mixed >> np.uint64(31)
    return mixed


def _fold_column(state: Hashes, column: pa.Array) -> Hashes:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _fold_column(state, column.dictionary_decode())
    if pa.types.is_struct(kind):
        folded = state
        for field in column.flatten():
            folded = _fold_column(folded, field)
    elif _is_bytes(kind):
        folded = _fold_bytes(state, column)
    elif pa.types.is_decimal(kind):
        folded = _fold_decimal(state, column)
    else:
        folded = _fold(state, _words(column))
    if column.null_count == 0:
        return folded
    is_null = column.is_null().to_numpy(zero_copy_only=False)
    return np.where(is_null, _fold(state, np.full(1, _NULL, dtype=np.uint64)), folded)


def _words(column: pa.Array) -> Hashes:
    kind = column.type
    if pa.types.is_null(kind):
        return np.zeros(len(column), dtype=np.uint64)
    if pa.types.is_boolean(kind):
        column = column.cast(pa.uint8())
    elif pa.types.is_date32(kind) or pa.types.is_time32(kind):
        column = column.view(pa.int32())
    elif pa.types.is_temporal(kind):
        column = column.view(pa.int64())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise TypeError(f"values of type {kind} cannot be keys")
    if column.null_count:
        column = pc.fill_null(column, 0)
    values: npt.NDArray[Any] = column.to_numpy(zero_copy_only=False)
    if not pa.types.is_floating(kind):
        return values.astype(np.int64, copy=False).view(np.uint64) if values.dtype != np.uint64 else values
    values = values.astype(np.float64) + 0.0
    values[np.isnan(values)] = np.nan
    return values.view(np.uint64)


def _fold_bytes(state: Hashes, column: pa.Array) -> Hashes:
    """Word by word over all rows at once: as many steps as the longest value has words."""
    column = column.cast(pa.large_binary()) if not pa.types.is_large_binary(column.type) else column
    if len(column) == 0:
        return state
    offsets = np.frombuffer(column.buffers()[1], dtype=np.int64)[column.offset : column.offset + len(column) + 1]
    lengths = np.diff(offsets)
    data = column.buffers()[2]
    raw = np.frombuffer(data, dtype=np.uint8)[offsets[0] : offsets[-1]] if data is not None else np.empty(0, np.uint8)
    padded = np.concatenate([raw, np.zeros(8, dtype=np.uint8)])
    windows = np.ndarray((len(padded) - 7,), dtype="<u8", buffer=padded, strides=(1,))
    starts = offsets[:-1] - offsets[0]
    state = state.copy()
    rows = np.flatnonzero(lengths > 0)
    position = 0
    while len(rows):
        left = lengths[rows] - position
        words = windows[starts[rows] + position].astype(np.uint64)
        short = left < 8
        if short.any():
            bits = (left[short] * 8).astype(np.uint64)
            words[short] &= (np.uint64(1) << bits) - np.uint64(1)
        state[rows] = _fold(state[rows], words)
        rows = rows[left > 8]
        position += 8
    return _fold(state, lengths.astype(np.uint64))


def _fold_decimal(state: Hashes, column: pa.Array) -> Hashes:
    width = column.type.bit_width // 64
    if width < 2:
        return _fold_decimal(state, column.cast(pa.decimal128(column.type.precision, column.type.scale)))
    data = np.frombuffer(column.buffers()[1], dtype="<u8")
    start = column.offset * width
    words = data[start : start + len(column) * width].reshape(len(column), width)
    for index in range(width):
        state = _fold(state, words[:, index].astype(np.uint64))
    return state


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
    )
