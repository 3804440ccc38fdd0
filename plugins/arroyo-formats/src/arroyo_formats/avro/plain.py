"""Decodes any Avro schema, value by value, and believes nothing that the bytes say.

Lengths, counts, branches and booleans are all checked. fastavro, which is hardly faster, is not as strict: it takes a
negative branch for one from the end, and any byte for true.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from arroyo_formats.avro.arrow_types import storage_type
from arroyo_formats.avro.schema import NULL, Array, Enum, Fixed, Map, Node, Record, Scalar, Union, members
from arroyo_formats.format import BadMessage

#: Takes the bytes and where a value begins; gives the value and where it ends.
Read = Callable[[bytes, int], tuple[Any, int]]

_FLOAT = struct.Struct("<f")
_DOUBLE = struct.Struct("<d")
_TOO_SHORT = "ends within a value"
_MASK = (1 << 64) - 1


class PlainDecoder:
    """Decodes values of one schema into what `storage_type` says."""

    def __init__(self, record: Record) -> None:
        self._fields = [_reader(field.type) for field in record.fields]
        self._types = [storage_type(field.type) for field in record.fields]
        self._names = [field.name for field in record.fields]

    def decode(self, bodies: Sequence[bytes]) -> tuple[pa.StructArray, list[BadMessage]]:
        """A row for each value that is one, and the others."""
        rows: list[list[Any]] = []
        bad: list[BadMessage] = []
        fields = self._fields
        for index, body in enumerate(bodies):
            try:
                at = 0
                row = []
                for read in fields:
                    value, at = read(body, at)
                    row.append(value)
                if at != len(body):
                    raise ValueError(f"{len(body) - at} bytes are left after the value")
            except (IndexError, struct.error):
                bad.append(BadMessage(index, _TOO_SHORT))
            except ValueError as error:
                bad.append(BadMessage(index, str(error)))
            else:
                rows.append(row)
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(fields)
        arrays = [pa.array(column, kind) for column, kind in zip(columns, self._types, strict=True)]
        nothing = pa.array([{}] * len(rows), pa.struct([]))
        return (pa.StructArray.from_arrays(arrays, self._names) if arrays else nothing), bad


def read_long(body: bytes, at: int) -> tuple[int, int]:
    byte = body[at]
    at += 1
    if byte < 0x80:
        return byte >> 1 ^ -(byte & 1), at
    value, shift = byte & 0x7F, 7
    while True:
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= _MASK
            return value >> 1 ^ -(value & 1), at
        shift += 7
        if shift >= 64:
            raise ValueError("a number of more than ten bytes")


def _reader(node: Node) -> Read:
    match node:
        case Scalar():
            return _SCALARS[node.kind]
        case Fixed():
            return _fixed(node.size)
        case Enum():
            return _enum(node)
        case Array():
            return _array(_reader(node.items))
        case Map():
            return _map(_reader(node.values))
        case Record():
            return _record(node)
        case Union():
            return _union(node)


def _read_null(body: bytes, at: int) -> tuple[None, int]:
    return None, at


def _read_boolean(body: bytes, at: int) -> tuple[bool, int]:
    byte = body[at]
    if byte > 1:
        raise ValueError(f"byte {byte} is no boolean")
    return byte == 1, at + 1


def _read_float(body: bytes, at: int) -> tuple[float, int]:
    return _FLOAT.unpack_from(body, at)[0], at + 4


def _read_double(body: bytes, at: int) -> tuple[float, int]:
    return _DOUBLE.unpack_from(body, at)[0], at + 8


def _read_bytes(body: bytes, at: int) -> tuple[bytes, int]:
    size, at = read_long(body, at)
    end = at + size
    if size < 0:
        raise ValueError(f"a length of {size}")
    if end > len(body):
        raise ValueError(_TOO_SHORT)
    return body[at:end], end


def _read_string(body: bytes, at: int) -> tuple[str, int]:
    found, at = _read_bytes(body, at)
    try:
        return found.decode(), at
    except UnicodeDecodeError as error:
        raise ValueError(f"a string that is not UTF-8: {error.reason}") from error


_SCALARS: dict[str, Read] = {
    "null": _read_null,
    "boolean": _read_boolean,
    "int": read_long,
    "long": read_long,
    "float": _read_float,
    "double": _read_double,
    "bytes": _read_bytes,
    "string": _read_string,
}


def _fixed(size: int) -> Read:
    def read(body: bytes, at: int) -> tuple[bytes, int]:
        if at + size > len(body):
            raise ValueError(_TOO_SHORT)
        return body[at : at + size], at + size

    return read


def _enum(node: Enum) -> Read:
    symbols = node.symbols

    def read(body: bytes, at: int) -> tuple[str, int]:
        index, at = read_long(body, at)
        if not 0 <= index < len(symbols):
            raise ValueError(f"enum {node.name} has no symbol {index}")
        return symbols[index], at

    return read


def _blocks(body: bytes, at: int) -> tuple[int, int]:
    count, at = read_long(body, at)
    if count < 0:
        # Then the size of the block follows, for those who skip it.
        _, at = read_long(body, at)
        count = -count
    return count, at


def _array(item: Read) -> Read:
    def read(body: bytes, at: int) -> tuple[list[Any], int]:
        values: list[Any] = []
        count, at = _blocks(body, at)
        while count:
            for _ in range(count):
                value, at = item(body, at)
                values.append(value)
            count, at = _blocks(body, at)
        return values, at

    return read


def _map(item: Read) -> Read:
    def read(body: bytes, at: int) -> tuple[list[tuple[str, Any]], int]:
        values: list[tuple[str, Any]] = []
        count, at = _blocks(body, at)
        while count:
            for _ in range(count):
                key, at = _read_string(body, at)
                value, at = item(body, at)
                values.append((key, value))
            count, at = _blocks(body, at)
        return values, at

    return read


def _record(node: Record) -> Read:
    fields = [(field.name, _reader(field.type)) for field in node.fields]

    def read(body: bytes, at: int) -> tuple[dict[str, Any], int]:
        row = {}
        for name, item in fields:
            row[name], at = item(body, at)
        return row, at

    return read


def _union(node: Union) -> Read:
    branches = [_reader(branch) for branch in node.branches]
    # A union of several types is a struct of which one member is set.
    several = len(members(node)[0]) > 1
    places = [sum(each != NULL for each in node.branches[:i]) for i in range(len(branches))]

    def read(body: bytes, at: int) -> tuple[Any, int]:
        index, at = read_long(body, at)
        if not 0 <= index < len(branches):
            raise ValueError(f"a union has no branch {index}")
        value, at = branches[index](body, at)
        if several and node.branches[index] != NULL:
            value = {f"member{places[index]}": value}
        return value, at

    return read
