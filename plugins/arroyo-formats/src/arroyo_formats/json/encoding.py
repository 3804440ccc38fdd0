"""JSON from Arrow, column by column with Arrow's string kernels: no Python object per value.

Strings, dates, times and decimals become JSON strings (a decimal as a number would lose digits in
most readers), timestamps ISO 8601 in UTC, lists arrays, structs and maps objects; NaN and the
infinities, which JSON does not know, become null.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_formats.text.plain_text import iso_seconds

#: Keeps the text of one part far below the 2 GiB that 32-bit offsets reach.
PART_ROWS = 16_384

_CONTROLS = {code: json.dumps(chr(code))[1:-1] for code in range(32)}


def encode_lines(batch: pa.RecordBatch) -> Iterator[pa.Buffer]:
    """The rows as UTF-8 lines, in parts; raises `TypeError` for a type that JSON cannot hold."""
    for objects in _parts(batch):
        yield _content(pc.binary_join_element_wise(objects, _scalar("\n"), _scalar("")))


def encode_messages(batch: pa.RecordBatch) -> pa.LargeBinaryArray:
    """The rows as objects, one for each; raises `TypeError` for a type that JSON cannot hold."""
    return pa.concat_arrays([objects.cast(pa.large_binary()) for objects in _parts(batch)])


def _parts(batch: pa.RecordBatch) -> Iterator[pa.Array]:
    for start in range(0, max(batch.num_rows, 1), PART_ROWS):
        part = batch.slice(start, PART_ROWS)
        yield _objects(batch.schema.names, part.columns, part.num_rows)


def _content(text: pa.Array) -> pa.Buffer:
    """The bytes of all values, one after the other."""
    _, offsets, data = text.buffers()
    if data is None or not len(text):
        return pa.py_buffer(b"")
    ends = pa.Array.from_buffers(pa.int64(), text.offset + len(text) + 1, [None, offsets])
    start = ends[text.offset].as_py()
    return data.slice(start, ends[text.offset + len(text)].as_py() - start)


@dataclass(frozen=True, slots=True)
class _Texts:
    """JSON text of the values of a column, null where they are, and what stands around each that is not."""

    values: pa.Array
    left: str = ""
    right: str = ""

    def without_nulls(self) -> _Texts:
        """With the word null for nulls. Where there are none nothing is copied: `left` and `right` stay apart."""
        return _Texts(pc.fill_null(self.whole(), "null")) if self.values.null_count else self

    def whole(self) -> pa.Array:
        if not self.left and not self.right:
            return self.values.cast(pa.large_string())
        return pc.binary_join_element_wise(*_large([self.left, self.values, self.right]), _scalar(""))


def _objects(names: list[str], columns: list[pa.Array], rows: int) -> pa.Array:
    if not columns:
        return pa.array(["{}"] * rows, pa.large_string())
    # What stands between two values is one literal: each part of the join costs as much as a value.
    parts: list[pa.Array | str] = []
    before = "{"
    for name, column in zip(names, columns, strict=True):
        texts = _texts(column).without_nulls()
        parts += [f"{before}{json.dumps(name)}:{texts.left}", texts.values]
        before = f"{texts.right},"
    return pc.binary_join_element_wise(*_large([*parts, f"{texts.right}}}"]), _scalar(""))


def _values(column: pa.Array) -> pa.Array:
    """Each value as JSON text; null where the value is null becomes the word null."""
    return _texts(column).without_nulls().whole()


def _texts(column: pa.Array) -> _Texts:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _texts(column.dictionary_decode())
    if pa.types.is_null(kind):
        return _Texts(pa.nulls(len(column), pa.large_string()))
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return _Texts(column.cast(pa.large_string()))
    if pa.types.is_floating(kind):
        return _Texts(_floats(column))
    if _is_text(kind):
        return _Texts(_escaped(column.cast(pa.large_string())), '"', '"')
    if pa.types.is_timestamp(kind):
        return _Texts(iso_seconds(column), '"', 'Z"')
    if pa.types.is_date(kind) or pa.types.is_time(kind) or pa.types.is_decimal(kind):
        return _Texts(column.cast(pa.string()), '"', '"')
    return _Texts(_nested(column))


def _nested(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_struct(kind):
        objects = _objects([field.name for field in kind], column.flatten(), len(column))
        return _where_valid(column, objects)
    if pa.types.is_map(kind):
        if not _is_text(kind.key_type):
            raise TypeError(f"a JSON object has names only, not {kind.key_type}")
        keys, items = _flat(column, column.keys), _flat(column, column.items)
        entries = pc.binary_join_element_wise(_texts(keys).whole(), _values(items), _scalar(":"))
        return _wrapped(column, entries, "{", "}")
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _wrapped(column, _values(_flat(column, column.values)), "[", "]")
    if pa.types.is_fixed_size_list(kind):
        return _nested(column.cast(pa.list_(kind.value_type)))
    raise TypeError(f"JSON has no way to write {kind}")


def _flat(column: pa.Array, values: pa.Array) -> pa.Array:
    """The child values that the list's own offsets point at."""
    offsets = column.offsets
    first, last = offsets[0].as_py() if len(offsets) else 0, offsets[len(column)].as_py() if len(offsets) else 0
    return values.slice(first, last - first)


def _wrapped(column: pa.Array, entries: pa.Array, left: str, right: str) -> pa.Array:
    """The entries of each list, joined by commas, in brackets."""
    offsets = column.offsets.cast(pa.int64())
    if len(offsets):
        offsets = pc.subtract(offsets, offsets[0])
    lists = pa.LargeListArray.from_arrays(offsets, entries)
    joined = pc.binary_join(lists, _scalar(","))
    return _where_valid(column, pc.binary_join_element_wise(*_large([left, joined, right]), _scalar("")))


def _where_valid(column: pa.Array, texts: pa.Array) -> pa.Array:
    return pc.if_else(column.is_valid(), texts, pa.scalar(None, texts.type))


def _floats(column: pa.Array) -> pa.Array:
    if pa.types.is_float16(column.type):
        column = column.cast(pa.float32())
    return pc.if_else(pc.is_finite(column), column, pa.scalar(None, column.type)).cast(pa.large_string())


def _escaped(texts: pa.Array) -> pa.Array:
    # Looking is much cheaper than replacing, and most columns need nothing.
    if not _needs_escape(texts):
        return texts
    texts = pc.replace_substring(texts, "\\", "\\\\")
    texts = pc.replace_substring(texts, '"', '\\"')
    for code, escape in _CONTROLS.items():
        character = chr(code)
        if pc.any(pc.match_substring(texts, character)).as_py():
            texts = pc.replace_substring(texts, character, escape)
    return texts


def _needs_escape(texts: pa.Array) -> bool:
    """Whether there is a quote, a backslash or a control character. In UTF-8 no byte of another character is one."""
    data = np.frombuffer(_content(texts), np.uint8)
    return bool(len(data) and (data.min() < len(_CONTROLS) or (data == ord('"')).any() or (data == ord("\\")).any()))


def _large(parts: list[pa.Array | str]) -> list[pa.Array | pa.Scalar]:
    return [_scalar(part) if isinstance(part, str) else part.cast(pa.large_string()) for part in parts]


def _scalar(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view())
