"""A column of a table, and which values of an Arrow column it holds."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from arroyo_connectors.texts import is_bytes, is_list

#: How many bits of an integer the types hold, of those with a sign one less.
_INTEGER_BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_INTEGER_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}
_LONG_TEXTS = frozenset({"json", "text", "mediumtext", "longtext"})
#: Types that a text is read into.
_TEXTS = _LONG_TEXTS | {"char", "varchar", "tinytext", "enum", "set", "uuid", "inet4", "inet6"}
_BYTES = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_TIMES = frozenset({"datetime", "timestamp"})
_FRACTION_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 6}


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkColumn:
    """A column as the catalogue has it."""

    name: str
    type_name: str
    #: The type as it is written in SQL.
    sql: str
    precision: int | None
    scale: int | None
    #: How many digits of a second it keeps.
    fraction: int
    collation: str
    #: Whether the collation takes texts for equal that differ in spaces at their ends.
    is_padded: bool
    is_needed: bool
    is_computed: bool
    #: Whether rows that do not say what it is are told apart by it: NULL, or a number that the table makes.
    is_distinct: bool

    @property
    def is_exact(self) -> bool:
        """Whether texts that differ in more than spaces at their ends are never taken for equal."""
        return not self.collation or self.collation == "binary" or self.collation.endswith("_bin")

    def holds(self, kind: pa.DataType, *, is_key: bool) -> bool:
        """Whether it can hold every value; of a key also without cutting off fractions of seconds."""
        if pa.types.is_null(kind):
            return True
        if pa.types.is_boolean(kind):
            return self.type_name in _INTEGER_BITS
        if pa.types.is_integer(kind):
            return self._holds_integer(kind)
        if pa.types.is_floating(kind):
            wide = pa.types.is_float64(kind)
            return self.scale is None and self.type_name in ({"double"} if wide else {"double", "float"})
        if pa.types.is_decimal(kind):
            return self._holds_decimal(kind.precision - kind.scale, max(kind.scale, 0))
        if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
            names = _TIMES if pa.types.is_timestamp(kind) else {"time"}
            return self.type_name in names and (not is_key or self.fraction >= _FRACTION_DIGITS[kind.unit])
        if pa.types.is_date(kind):
            return self.type_name == "date" or self.type_name in _TIMES
        if is_bytes(kind):
            return self.type_name in _BYTES
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            return self.type_name in _TEXTS
        if is_list(kind) or pa.types.is_struct(kind) or pa.types.is_map(kind):
            return self.type_name in _LONG_TEXTS
        return False

    def _holds_integer(self, kind: pa.DataType) -> bool:
        if self.type_name == "decimal":
            return self._holds_decimal(_INTEGER_DIGITS[kind.bit_width], 0)
        bits = _INTEGER_BITS.get(self.type_name, 0)
        if pa.types.is_unsigned_integer(kind):
            return bool(kind.bit_width <= bits - (not self._is_unsigned))
        return not self._is_unsigned and bool(kind.bit_width <= bits)

    def _holds_decimal(self, digits: int, scale: int) -> bool:
        if self.type_name != "decimal" or self._is_unsigned:
            return False
        assert self.precision is not None
        own = self.scale or 0
        return digits <= self.precision - own and scale <= own

    @property
    def _is_unsigned(self) -> bool:
        return "unsigned" in self.sql
