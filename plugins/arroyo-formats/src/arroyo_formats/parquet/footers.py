"""Looks into the footer of a Parquet file for what ends the process: pyarrow does not catch what Arrow throws there.

Arrow compares the statistics of sizes that a column chunk may have with the schema when the chunk is first asked for.
A footer is a struct in the compact protocol of Thrift.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq

from arroyo_formats.files import open_for_reading

#: The length of the footer and the magic, at the end of a file.
_END_BYTES = 8
_TRUE, _FALSE, _BYTE, _INT_16, _INT_64, _DOUBLE = 1, 2, 3, 4, 6, 7
_BINARY, _LIST, _SET, _MAP, _STRUCT = 8, 9, 10, 11, 12
#: Numbers of fields: from the footer to its row groups, their columns, the metadata of these, and its sizes.
_ROW_GROUPS, _COLUMNS, _METADATA, _SIZES, _TEXT_BYTES, _REPETITIONS, _DEFINITIONS = 4, 1, 3, 16, 1, 2, 3
_MAX_DEPTH = 64


@dataclass(slots=True)
class _Sizes:
    """Of a column chunk: how long its histograms are, and whether it says how long its texts are."""

    column: int
    repetitions: int = 0
    definitions: int = 0
    has_text_bytes: bool = False


def read_footer(fs: Any, path: str) -> bytes:
    """The end of a file, with all of its footer."""
    with open_for_reading(fs, path) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _END_BYTES))
        footer = int.from_bytes(file.read(4), "little")
        file.seek(max(0, size - _END_BYTES - footer))
        found: bytes = file.read()
    return found


def check_sizes(data: bytes, file: pq.ParquetFile) -> None:
    """Raise `ValueError` where the statistics of a chunk are not those of its column: a number for each level.

    `data` is the file, or the end of it.
    """
    end = len(data) - _END_BYTES
    start = end - int.from_bytes(data[end : end + 4], "little")
    try:
        chunks = _sizes(data[max(0, start) : end])
    except (IndexError, RecursionError) as error:
        raise ValueError("its footer is damaged") from error
    for chunk in chunks:
        if chunk.column >= len(file.schema):
            raise ValueError("its footer has more columns than its schema")
        column = file.schema.column(chunk.column)
        for found, greatest in (
            (chunk.repetitions, column.max_repetition_level),
            (chunk.definitions, column.max_definition_level),
        ):
            if found not in (0, greatest + 1):
                raise ValueError(f"column {column.path!r} has {found} counts of levels, and {greatest + 1} levels")
        if chunk.has_text_bytes and column.physical_type != "BYTE_ARRAY":
            raise ValueError(f"column {column.path!r} says how long its texts are, and has none")


def _sizes(footer: bytes) -> list[_Sizes]:
    """Of each chunk."""
    found: list[_Sizes] = []

    def read_group(at: int, _: int) -> int:
        return _read_struct(footer, at, _COLUMNS, _LIST, read_column)

    def read_column(at: int, index: int) -> int:
        found.append(_Sizes(index))
        return _read_struct(footer, at, _METADATA, _STRUCT, read_metadata)

    def read_metadata(at: int, _: int) -> int:
        return _read_struct(footer, at, _SIZES, _STRUCT, read_sizes)

    def read_sizes(at: int, _: int) -> int:
        return _read_sizes(footer, at, found[-1])

    _read_struct(footer, 0, _ROW_GROUPS, _LIST, read_group)
    return found


def _read_sizes(data: bytes, at: int, found: _Sizes) -> int:
    number = 0
    while data[at]:
        number, kind, at = _field_head(data, at, number)
        if number == _TEXT_BYTES:
            found.has_text_bytes = True
        elif kind == _LIST and number == _REPETITIONS:
            found.repetitions = _list_head(data, at)[0]
        elif kind == _LIST and number == _DEFINITIONS:
            found.definitions = _list_head(data, at)[0]
        at = _behind(data, at, kind)
    return at + 1


def _read_struct(data: bytes, at: int, wanted: int, wanted_kind: int, read: Callable[[int, int], int]) -> int:
    """Pass over the struct at a place, but for one field; returns the place behind the struct.

    That field is a struct, or a list of them: `read` is given the place and the index of each, and returns the place
    behind it.
    """
    number = 0
    while data[at]:
        number, kind, at = _field_head(data, at, number)
        if number != wanted or kind != wanted_kind:
            at = _behind(data, at, kind)
        elif kind == _STRUCT:
            at = read(at, 0)
        else:
            count, inner, at = _list_head(data, at)
            for index in range(count):
                at = read(at, index) if inner == _STRUCT else _behind_item(data, at, inner, 0)
    return at + 1


def _field_head(data: bytes, at: int, last: int) -> tuple[int, int, int]:
    """The number of a field, its type, and where its value begins; `last` is the number of the field before it."""
    head = data[at]
    if head >> 4:
        return last + (head >> 4), head & 0x0F, at + 1
    value, at = _varint(data, at + 1)
    return _zigzag(value), head & 0x0F, at


def _list_head(data: bytes, at: int) -> tuple[int, int, int]:
    """How many items a list has, of which type, and where they begin."""
    head = data[at]
    count, at = head >> 4, at + 1
    if count == 15:
        count, at = _varint(data, at)
    return count, head & 0x0F, at


def _behind_struct(data: bytes, at: int, depth: int) -> int:
    """As `_behind`, of a struct. Most of the time of a check is here: fields of the usual types take no call."""
    if depth > _MAX_DEPTH:
        raise IndexError("too deep")
    while head := data[at]:
        at += 1
        if head < 16:
            _, at = _varint(data, at)
        kind = head & 0x0F
        if _INT_16 <= kind <= _INT_64:
            while data[at] >= 0x80:
                at += 1
            at += 1
        elif kind == _BINARY and data[at] < 0x80:
            at += data[at] + 1
        else:
            at = _behind(data, at, kind, depth)
    return at + 1


def _behind(data: bytes, at: int, kind: int, depth: int = 0) -> int:
    """The place behind a value, in a struct."""
    if kind in (_TRUE, _FALSE):
        return at
    if _INT_16 <= kind <= _INT_64:
        return _varint(data, at)[1]
    if kind == _BYTE:
        return at + 1
    if kind == _DOUBLE:
        return at + 8
    if kind == _STRUCT:
        return _behind_struct(data, at, depth + 1)
    if kind == _BINARY:
        size, at = _varint(data, at)
        return at + size
    if kind in (_LIST, _SET):
        return _behind_list(data, at, depth)
    if kind == _MAP:
        count, at = _varint(data, at)
        kinds = data[at] if count else 0
        at += bool(count)
        for _ in range(count):
            at = _behind_item(data, at, kinds >> 4, depth)
            at = _behind_item(data, at, kinds & 0x0F, depth)
        return at
    return _varint(data, at)[1]


def _behind_list(data: bytes, at: int, depth: int) -> int:
    count, inner, at = _list_head(data, at)
    if _INT_16 <= inner <= _INT_64:
        for _ in range(count):
            while data[at] >= 0x80:
                at += 1
            at += 1
        return at
    for _ in range(count):
        at = _behind_item(data, at, inner, depth)
    return at


def _behind_item(data: bytes, at: int, kind: int, depth: int) -> int:
    """The place behind an item of a list or a map, where a truth takes a byte."""
    if depth > _MAX_DEPTH:
        raise IndexError("too deep")
    return at + 1 if kind in (_TRUE, _FALSE) else _behind(data, at, kind, depth + 1)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise IndexError("a number without end")


def _zigzag(value: int) -> int:
    return value >> 1 ^ -(value & 1)
