"""Ways to run what has no Arrow kernel over a whole column at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def per_distinct(values: pa.Array, function: Callable[[Any], Any], result: pa.DataType) -> pa.Array:
    """`function` of every value, called once for each distinct one; null stays null."""
    encoded = values.dictionary_encode()
    results = pa.array([function(value) for value in encoded.dictionary.to_pylist()], result)
    return results.take(encoded.indices)


def on_other_than_ascii(texts: pa.Array, function: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """`function` of the texts that have a character beyond ASCII; the others stay as they are."""
    is_other = pc.fill_null(pc.invert(pc.string_is_ascii(texts)), False)
    if not pc.any(is_other).as_py():
        return texts
    return pc.replace_with_mask(texts, is_other, function(texts.filter(is_other)))


def each_text(function: Callable[[str], str]) -> Callable[[pa.Array], pa.Array]:
    """A function of texts without nulls that calls `function` for every one: for what has no kernel."""
    return lambda texts: pa.array([function(text) for text in texts.to_pylist()], texts.type)


def by_setting(
    setting: pa.Array, values: pa.Array, function: Callable[[Any, pa.Array], pa.Array], result: pa.DataType
) -> pa.Array:
    """`function(setting, rows)` for the rows of each distinct setting, in the order of the rows.

    A setting is an argument that is mostly the same for all rows: that case costs one comparison.
    Rows whose setting is null get null.
    """
    if len(setting) and _is_constant(setting):
        return function(setting[0].as_py(), values)
    encoded = setting.dictionary_encode()
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(encoded.dictionary) + 1))
    parts = [
        function(value, values.take(pa.array(order[start:end])))
        for value, (start, end) in zip(encoded.dictionary.to_pylist(), pairwise(bounds), strict=True)
    ]
    # The rows without a setting come first in the order, and have no place among the parts.
    place = np.empty(len(codes), dtype=np.int64)
    place[order] = np.arange(len(codes)) - bounds[0]
    return pa.concat_arrays([pa.array([], result), *parts]).take(pa.array(place, mask=place < 0))


def _is_constant(setting: pa.Array) -> bool:
    return bool(setting.null_count == 0 and pc.all(pc.equal(setting, setting[0])).as_py())


def bytes_of(texts: pa.Array) -> tuple[Bytes, Offsets]:
    """The bytes of all texts one after the other, to be changed at will, and where each begins; a null has none."""
    column = texts.cast(pa.large_string())
    if column.null_count:
        column = pc.fill_null(column, "")
    offsets = np.frombuffer(column.buffers()[1], dtype=np.int64)[column.offset : column.offset + len(column) + 1]
    data = column.buffers()[2]
    if len(column) == 0 or data is None:
        return np.empty(0, np.uint8), np.zeros(len(column) + 1, dtype=np.int64)
    return np.frombuffer(data, dtype=np.uint8)[offsets[0] : offsets[-1]].copy(), offsets - offsets[0]


def texts_of(data: Bytes, offsets: Offsets, like: pa.Array) -> pa.Array:
    """The inverse of `bytes_of`: null where `like` is. The bytes must be UTF-8, which is not checked."""
    buffers: Sequence[Any] = [None, pa.py_buffer(offsets.astype(np.int64)), pa.py_buffer(data)]
    texts = pa.Array.from_buffers(pa.large_string(), len(like), buffers).cast(pa.string())
    return pc.if_else(like.is_valid(), texts, None) if like.null_count else texts


def texts_between(data: Bytes, starts: Offsets, ends: Offsets, is_null: Mask) -> pa.Array:
    """The texts that lie in `data` from each start to its end; null where `is_null`."""
    lengths = np.where(is_null, 0, ends - starts)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    places = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
    buffers: Sequence[Any] = [pa.array(~is_null).buffers()[1], pa.py_buffer(offsets), pa.py_buffer(data[places])]
    return pa.Array.from_buffers(pa.large_string(), len(starts), buffers).cast(pa.string())
