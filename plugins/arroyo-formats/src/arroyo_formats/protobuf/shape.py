"""What a message type holds, as columns have it. A message that contains itself has no columns, and is refused."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import pyarrow as pa
from google.protobuf.descriptor import FieldDescriptor as Fd

from arroyo_formats.nesting import Bounds
from arroyo_formats.protobuf.compiling import ProtoError

_SCALARS: dict[int, pa.DataType] = {
    Fd.CPPTYPE_BOOL: pa.bool_(),
    Fd.CPPTYPE_INT32: pa.int32(),
    Fd.CPPTYPE_INT64: pa.int64(),
    Fd.CPPTYPE_UINT32: pa.uint32(),
    Fd.CPPTYPE_UINT64: pa.uint64(),
    Fd.CPPTYPE_FLOAT: pa.float32(),
    Fd.CPPTYPE_DOUBLE: pa.float64(),
}
_WRAPPERS = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Bool", "Int32", "Int64", "UInt32", "UInt64", "Float", "Double", "String", "Bytes")
)
_TIMESTAMP, _DURATION = "google.protobuf.Timestamp", "google.protobuf.Duration"


class Kind(Enum):
    """How a value of a field is to be taken."""

    PLAIN = auto()
    ENUM = auto()
    TIMESTAMP = auto()
    DURATION = auto()
    #: A message of one field, `value`, which is there to be null.
    WRAPPER = auto()
    MESSAGE = auto()


class Label(Enum):
    """How often a field has values."""

    ONE = auto()
    REPEATED = auto()
    MAP = auto()


@dataclass(frozen=True, slots=True)
class Value:
    """One value, of a field or of an item of it."""

    kind: Kind
    #: Of the column. Of a message, its fields.
    type: pa.DataType
    fields: tuple[Field, ...] = ()
    #: Of an enum, the names by numbers.
    names: tuple[tuple[int, str], ...] = ()
    #: Of an enum, the numbers by names.
    numbers: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message."""

    name: str
    label: Label
    value: Value
    #: Whether a message can tell that it has none, and the column be null.
    has_presence: bool = False
    #: Of which at most one is set; empty where there is none.
    oneof: str = ""
    key: pa.DataType | None = None

    @property
    def type(self) -> pa.DataType:
        if self.label is Label.REPEATED:
            return pa.list_(self.value.type)
        return pa.map_(self.key, self.value.type) if self.label is Label.MAP else self.value.type


def fields_of(message: Any, unit: str) -> tuple[Field, ...]:
    """The fields of a message type, with times in a unit; raises `ProtoError` for one that contains itself."""
    return _Walk(unit, Bounds(_error)).fields(message, (), "")


def arrow_schema(fields: tuple[Field, ...]) -> pa.Schema:
    """The columns of a message. None is promised to be without nulls, as in all other formats."""
    return pa.schema([(field.name, field.type) for field in fields])


@dataclass(frozen=True, slots=True)
class _Walk:
    unit: str
    bounds: Bounds

    def fields(self, message: Any, within: tuple[str, ...], at: str) -> tuple[Field, ...]:
        within = (*within, message.full_name)
        return tuple(self._field(field, within, f"{at}.{field.name}" if at else field.name) for field in message.fields)

    def _field(self, field: Any, within: tuple[str, ...], at: str) -> Field:
        kind = field.message_type
        if kind is not None and kind.GetOptions().map_entry:
            key, value = kind.fields_by_name["key"], kind.fields_by_name["value"]
            return Field(field.name, Label.MAP, self._value(value, within, at), key=_scalar(key))
        value = self._value(field, within, at)
        if field.is_repeated:
            return Field(field.name, Label.REPEATED, value)
        oneof = field.containing_oneof
        # An `optional` of proto3 is a oneof of its own, which nobody wrote.
        several = oneof.name if oneof is not None and len(oneof.fields) > 1 else ""
        has_presence = field.has_presence and not field.is_required
        return Field(field.name, Label.ONE, value, has_presence=has_presence, oneof=several)

    def _value(self, field: Any, within: tuple[str, ...], at: str) -> Value:
        if field.enum_type is not None:
            numbers = tuple((each.name, each.number) for each in field.enum_type.values)
            # Of several names of a number, the first.
            names = tuple({number: name for name, number in reversed(numbers)}.items())
            return Value(Kind.ENUM, pa.string(), names=names, numbers=numbers)
        message = field.message_type
        if message is None:
            return Value(Kind.PLAIN, _scalar(field))
        if message.full_name == _TIMESTAMP:
            return Value(Kind.TIMESTAMP, pa.timestamp(self.unit, "UTC"))
        if message.full_name == _DURATION:
            return Value(Kind.DURATION, pa.duration(self.unit))
        if message.full_name in _WRAPPERS:
            return Value(Kind.WRAPPER, _scalar(message.fields_by_name["value"]))
        if message.full_name in within:
            raise _error(at, f"{message.full_name} contains itself, which columns cannot: leave the column out")
        with self.bounds.inside(at):
            fields = self.fields(message, within, at)
        return Value(Kind.MESSAGE, pa.struct([(each.name, each.type) for each in fields]), fields)


def _error(at: str, text: str) -> ProtoError:
    return ProtoError(f"{at}: {text}")


def _scalar(field: Any) -> pa.DataType:
    if field.cpp_type == Fd.CPPTYPE_STRING:
        return pa.binary() if field.type == Fd.TYPE_BYTES else pa.string()
    return _SCALARS[field.cpp_type]
