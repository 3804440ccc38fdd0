"""Keys: the stable hash of a Python key, and exact equality and groups over Arrow columns.

Rows are found by their 64-bit hash and then compared by value: two keys that share a hash are
still two keys. Null equals null, and NaN equals NaN, as in the hash.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.api.hashing import hash_bytes
from arroyo_core.ids import FULL_KEY_RANGE, KeyRange
from arroyo_core.state import codec
from arroyo_core.state.chunks import large_type, one_chunk, take_column

Codes = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def hash_key(key: Any) -> int:
    """The 64-bit hash of a key of a global table: that of its msgpack bytes, the same everywhere."""
    return hash_bytes(codec.encode(key, table="hash_key", what="key"))


def place_in_range(hashes: npt.NDArray[np.uint64], key_range: KeyRange) -> npt.NDArray[np.uint64]:
    """Hashes moved into a range, spread over it: where the keys that a subtask owns are, whatever their hash."""
    if key_range == FULL_KEY_RANGE:
        return hashes
    return np.uint64(key_range.start) + hashes % np.uint64(key_range.end - key_range.start + 1)


def equal_rows(left: Sequence[Any], right: Sequence[Any]) -> Mask:
    """Row by row, whether the columns of `left` and `right` hold the same values."""
    same = np.ones(len(left[0]), dtype=np.bool_)
    for first, second in zip(left, right, strict=True):
        mine, theirs = one_chunk(first), one_chunk(second)
        if mine.type != theirs.type:
            # One side is so large that it has other offsets.
            mine, theirs = mine.cast(large_type(mine.type)), theirs.cast(large_type(theirs.type))
        same &= _equal_column(mine, theirs)
    return same


def group_codes(hashes: npt.NDArray[np.uint64], columns: Sequence[Any]) -> Codes:
    """A number per row; two rows have the same one exactly if their hash and all columns are equal."""
    first_rows, found = _hash_codes(hashes)
    if not columns or len(hashes) == 0:
        return found
    chunks = [one_chunk(column) for column in columns]
    if all(_is_comparable(column.type) for column in chunks):
        leaders = first_rows[found]
        # Only a row that shares its hash with an earlier one can be of another key than that.
        followers = np.flatnonzero(leaders != np.arange(len(hashes)))
        mine, theirs = followers, leaders[followers]
        if equal_rows([take_column(c, mine) for c in chunks], [take_column(c, theirs) for c in chunks]).all():
            return found
    for column in chunks:
        labels = _labels(column)
        _, codes = np.unique(found * (labels.max(initial=-1) + 2) + labels + 1, return_inverse=True)
        found = codes.astype(np.int64, copy=False)
    return found


def _hash_codes(hashes: npt.NDArray[np.uint64]) -> tuple[Rows, Codes]:
    """The first row of each group of equal hashes, and the group of each row."""
    if len(hashes) and bool((hashes[:-1] <= hashes[1:]).all()):
        starts = np.concatenate([[True], hashes[1:] != hashes[:-1]])
        return np.flatnonzero(starts), np.cumsum(starts) - 1
    _, first_rows, codes = np.unique(hashes, return_index=True, return_inverse=True)
    return first_rows, codes.astype(np.int64, copy=False)


def _equal_column(left: Any, right: Any) -> Mask:
    kind = left.type
    if pa.types.is_struct(kind):
        is_null = _mask(left.is_null())
        same = equal_rows(left.flatten(), right.flatten()) if kind.num_fields else np.ones(len(left), dtype=np.bool_)
        return (same & ~is_null & ~_mask(right.is_null())) | (is_null & _mask(right.is_null()))
    if pa.types.is_null(kind):
        return np.ones(len(left), dtype=np.bool_)
    same = _mask(pc.fill_null(pc.equal(left, right), False))
    if left.null_count or right.null_count:
        same |= _mask(left.is_null()) & _mask(right.is_null())
    if pa.types.is_floating(kind):
        same |= _mask(pc.fill_null(pc.and_(pc.is_nan(left), pc.is_nan(right)), False))
    return same


def _labels(column: Any) -> Codes:
    """A number per value of one column; -1 for null."""
    if pa.types.is_nested(column.type):
        # Arrow has no equality for lists; only a delete by value of a nested column comes here.
        seen: dict[str, int] = {}
        values = (repr(value) for value in column.to_pylist())
        return np.array([seen.setdefault(value, len(seen)) for value in values], dtype=np.int64)
    if pa.types.is_null(column.type):
        return np.full(len(column), -1, dtype=np.int64)
    encoded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
    labels: Codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return labels


def _is_comparable(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return all(_is_comparable(field.type) for field in kind)
    return not pa.types.is_nested(kind) and not pa.types.is_dictionary(kind)


def _mask(values: Any) -> Mask:
    found: Mask = values.to_numpy(zero_copy_only=False)
    return found.astype(np.bool_, copy=False)
