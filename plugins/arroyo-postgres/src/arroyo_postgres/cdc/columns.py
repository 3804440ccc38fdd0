"""Columns of tables: their Arrow types, and Arrow arrays of the texts that PostgreSQL writes.

Values of the snapshot and of the stream come as texts, and all go through `make_array`: a row is the same either way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.errors import DataError
from arroyo_postgres.cdc.pgoutput import NULL, Bytes, Values

#: Types by their numbers, which are the same on every server.
_TYPES: dict[int, pa.DataType] = {
    16: pa.bool_(),
    17: pa.binary(),
    20: pa.int64(),
    21: pa.int16(),
    23: pa.int32(),
    26: pa.int64(),  # oid: 32 bits without a sign
    700: pa.float32(),
    701: pa.float64(),
    1082: pa.date32(),
    1114: pa.timestamp("us"),
    1184: pa.timestamp("us", "UTC"),
}
_NUMERIC = 1700
#: Of a numeric with a precision the modifier has this added to it.
_MODIFIER_OFFSET = 4
#: What the offsets of an Arrow array can tell apart.
_MAX_TEXTS = 2**31 - 1
_INTEGERS = (pa.int16(), pa.int32(), pa.int64())


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column that is read."""

    name: str
    #: As it is declared: perhaps a domain.
    type_oid: int
    type_modifier: int
    type: pa.DataType

    @property
    def field(self) -> pa.Field:
        return pa.field(self.name, self.type)


def arrow_type(type_oid: int, type_modifier: int, *, as_text: bool = False) -> pa.DataType:
    """What a column becomes; all that is not known is the text that PostgreSQL writes."""
    if as_text:
        return pa.string()
    if type_oid == _NUMERIC:
        return _decimal(type_modifier)
    return _TYPES.get(type_oid, pa.string())


def can_read(column: TableColumn, type_oid: int, type_modifier: int) -> bool:
    """Whether texts of a column that is now of this type still are values of the column as it is read."""
    if (type_oid, type_modifier) == (column.type_oid, column.type_modifier):
        return True
    found = arrow_type(type_oid, type_modifier)
    if found in _INTEGERS and column.type in _INTEGERS:
        return _INTEGERS.index(found) <= _INTEGERS.index(column.type)
    return bool(found == column.type)


def make_array(texts: pa.Array, column: TableColumn) -> pa.Array:
    """The values of texts, a string array with nulls; raises `DataError` for a value that the type does not have."""
    kind = column.type
    try:
        if pa.types.is_string(kind):
            return texts
        if pa.types.is_boolean(kind):
            return pc.equal(texts, pa.scalar("t", pa.string()))
        if pa.types.is_binary(kind):
            return _bytes(texts)
        return pc.cast(texts, kind)
    except (pa.ArrowInvalid, ValueError) as error:
        raise DataError(
            f"column {column.name!r} has a value that {kind} does not have: {error}; as_text: [{column.name}] gives "
            "its texts"
        ) from error


def gather_texts(values: Values, data: Bytes) -> pa.Array:
    """The string array of values that are somewhere in these bytes; raises `DataError` where they are not UTF-8."""
    offsets = np.zeros(len(values.lengths) + 1, dtype=np.int64)
    np.cumsum(values.lengths, out=offsets[1:])
    total = int(offsets[-1])
    if total > _MAX_TEXTS:
        raise DataError(
            f"the texts of one column have {total >> 20} MiB in a single change or batch: at most 2 GiB can be read"
        )
    places = np.repeat(values.starts - offsets[:-1], values.lengths) + np.arange(total)
    is_null = values.kinds == NULL
    validity = pa.array(~is_null).buffers()[1] if is_null.any() else None
    buffers = [validity, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data[places])]
    binary = pa.Array.from_buffers(pa.binary(), len(values.lengths), buffers, int(is_null.sum()))
    try:
        return pc.cast(binary, pa.string())
    except pa.ArrowInvalid as error:
        raise DataError(f"a text is not UTF-8: {error}") from error


def _bytes(texts: pa.Array) -> pa.Array:
    """Of `\\x0a0b`, two digits for each byte."""
    if not pc.all(pc.starts_with(texts, "\\x"), min_count=0).as_py():
        raise ValueError("bytes are not written in hex")
    digits = pa.concat_arrays([pc.utf8_slice_codeunits(texts, 2)])
    _, offsets, data = digits.buffers()
    ends = np.frombuffer(offsets, np.int32)[digits.offset : digits.offset + len(digits) + 1]
    first, last = int(ends[0]), int(ends[-1])
    joined = bytes.fromhex(data.to_pybytes()[first:last].decode("ascii")) if data is not None else b""
    if len(joined) * 2 != last - first or ((ends - first) % 2).any():
        raise ValueError("bytes are not written in hex")
    new_offsets = ((ends - first) // 2).astype(np.int32)
    mask = digits.is_valid()
    made = pa.Array.from_buffers(pa.binary(), len(digits), [None, pa.py_buffer(new_offsets), pa.py_buffer(joined)])
    return made if digits.null_count == 0 else pc.if_else(mask, made, pa.scalar(None, pa.binary()))


def _decimal(modifier: int) -> pa.DataType:
    """A numeric without precision, or with more digits or another scale than Arrow has, stays a text."""
    if modifier < _MODIFIER_OFFSET:
        return pa.string()
    precision = (modifier - _MODIFIER_OFFSET) >> 16 & 0xFFFF
    scale = (((modifier - _MODIFIER_OFFSET) & 0x7FF) ^ 1024) - 1024
    if not 0 <= scale <= precision <= 76:
        return pa.string()
    return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
