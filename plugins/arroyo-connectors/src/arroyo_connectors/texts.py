"""Arrow values as texts that databases read: bytes as digits, nested values as JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.errors import DataError


def is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def hex_texts(column: pa.Array, before: str, after: str) -> pa.Array:
    r"""Bytes as large strings with two digits for each, between two texts: `\x0a0b`, `X'0a0b'`; NULL stays."""
    binary = pa.concat_arrays([column.cast(pa.large_binary())])
    _, offsets, data = binary.buffers()
    ends = np.frombuffer(offsets, np.int64)[binary.offset : binary.offset + len(binary) + 1]
    first, last = (int(ends[0]), int(ends[-1])) if len(binary) else (0, 0)
    digits = data.to_pybytes()[first:last].hex().encode() if data is not None else b""
    moved = pa.py_buffer(((ends - first) * 2).astype(np.int64))
    made = pa.Array.from_buffers(pa.large_string(), len(binary), [None, moved, pa.py_buffer(digits)])
    return pc.if_else(binary.is_valid(), between(before, made, after), large_text(None))


def json_texts(column: pa.Array, name: str) -> pa.Array:
    """Nested values as large strings; raises `DataError` for one that JSON does not have."""
    try:
        texts = [None if value is None else _json(value) for value in column.to_pylist(maps_as_pydicts="strict")]
    except (ValueError, KeyError) as error:
        raise DataError(f"column {name!r} has a value that JSON does not have: {error}") from error
    return pa.array(texts, pa.large_string())


def between(before: str, texts: pa.Array, after: str) -> pa.Array:
    """Each text between two others, as large strings."""
    return pc.binary_join_element_wise(large_text(before), texts, large_text(after), large_text(""))


def large_text(text: str | None) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def _json(value: Any) -> str:
    return json.dumps(value, default=_other, allow_nan=False, ensure_ascii=False)


def _other(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
