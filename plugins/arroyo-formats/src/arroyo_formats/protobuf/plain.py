"""Reads and writes messages of any type through google.protobuf, value by value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from google.protobuf import message_factory
from google.protobuf.message import DecodeError, Message

from arroyo_formats.format import BadMessage
from arroyo_formats.protobuf.shape import Field, Kind, Label, Value

#: How many of a unit a second has, and how many nanoseconds it has itself.
_UNITS = {"s": (1, 10**9), "ms": (10**3, 10**6), "us": (10**6, 10**3), "ns": (10**9, 1)}
_INT64 = range(-(2**63), 2**63)

Get = Callable[[Any], Any]


class PlainDecoder:
    """Reads messages of one type."""

    def __init__(self, descriptor: Any, fields: Sequence[Field]) -> None:
        self._parse: Callable[[bytes], Any] = message_factory.GetMessageClass(descriptor).FromString
        self._getters = [_getter(field) for field in fields]
        self._types = [field.type for field in fields]
        self._names = [field.name for field in fields]

    def decode(self, bodies: Sequence[bytes]) -> tuple[list[pa.Array], list[BadMessage]]:
        """The columns of those that are messages, and the others."""
        rows: list[list[Any]] = []
        bad: list[BadMessage] = []
        for index, body in enumerate(bodies):
            try:
                message = self._parse(body)
                if not message.IsInitialized():
                    raise ValueError(f"lacks required fields: {', '.join(message.FindInitializationErrors())}")
                rows.append([get(message) for get in self._getters])
            except DecodeError as error:
                bad.append(BadMessage(index, reason_of(error)))
            except ValueError as error:
                bad.append(BadMessage(index, str(error)))
        columns = zip(*rows, strict=True) if rows else [()] * len(self._types)
        return [pa.array(column, kind) for column, kind in zip(columns, self._types, strict=True)], bad

    def refusals(self, bodies: Sequence[bytes]) -> list[BadMessage]:
        """Those that are no messages, which is found faster than what the others hold."""
        bad = []
        for index, body in enumerate(bodies):
            try:
                self._parse(body)
            except DecodeError as error:
                bad.append(BadMessage(index, reason_of(error)))
        return bad


def reason_of(error: DecodeError) -> str:
    """Without the type of the message, which is that of all; protobuf says more than that since version 7."""
    _, has_detail, detail = str(error).rpartition("': ")
    return detail[:1].lower() + detail[1:] if has_detail else "not a message of its type"


def _getter(field: Field) -> Get:
    name, convert = field.name, _converter(field.value)
    if field.label is Label.MAP:
        # In the order of the keys: of its own it has none, and the same bytes have to give the same row.
        return lambda message: sorted(
            ((key, convert(value)) for key, value in getattr(message, name).items()), key=lambda entry: entry[0]
        )
    if field.label is Label.REPEATED:
        return lambda message: [convert(item) for item in getattr(message, name)]
    if field.has_presence:
        return lambda message: convert(getattr(message, name)) if message.HasField(name) else None
    return lambda message: convert(getattr(message, name))


def _converter(value: Value) -> Get:
    match value.kind:
        case Kind.PLAIN:
            return lambda found: found
        case Kind.ENUM:
            names = dict(value.names)
            return lambda number: names.get(number) or str(number)
        case Kind.TIMESTAMP | Kind.DURATION:
            return _time(value)
        case Kind.WRAPPER:
            return lambda message: message.value
        case Kind.MESSAGE:
            getters = [(field.name, _getter(field)) for field in value.fields]
            return lambda message: {name: get(message) for name, get in getters}


def _time(value: Value) -> Get:
    per_second, nanos_each = _UNITS[value.type.unit]
    name = value.kind.name.lower()

    def convert(message: Any) -> int:
        nanos = message.nanos
        part = nanos // nanos_each if nanos >= 0 else -(-nanos // nanos_each)
        found: int = message.seconds * per_second + part
        if found not in _INT64:
            raise ValueError(f"a {name} that {value.type} cannot hold")
        return found

    return convert


class PlainEncoder:
    """Writes messages of one type, of columns as `to_fields` makes them."""

    def __init__(self, descriptor: Any, fields: Sequence[Field]) -> None:
        self._type = message_factory.GetMessageClass(descriptor)
        self._setters = [_setter(field) for field in fields]

    def encode(self, columns: Sequence[pa.Array]) -> pa.Array:
        """`binary`, a message for each row."""
        messages = []
        for row in zip(*(column.to_pylist() for column in columns), strict=True):
            message = self._type()
            for put, value in zip(self._setters, row, strict=True):
                if value is not None:
                    put(message, value)
            messages.append(message.SerializeToString(deterministic=True))
        return pa.array(messages, pa.large_binary())


def _setter(field: Field) -> Callable[[Any, Any], None]:
    name, fill, is_message = field.name, _filler(field.value), field.value.kind not in (Kind.PLAIN, Kind.ENUM)
    if field.label is Label.MAP:

        def put_map(message: Any, entries: Any) -> None:
            found = getattr(message, name)
            for key, value in entries:
                if is_message:
                    fill(found[key], value)
                else:
                    found[key] = value

        return put_map
    if field.label is Label.REPEATED:

        def put_list(message: Any, values: Any) -> None:
            found = getattr(message, name)
            if not is_message:
                found.extend(values)
                return
            for value in values:
                fill(found.add(), value)

        return put_list
    if not is_message:
        return lambda message, value: setattr(message, name, value)

    def put_message(message: Any, value: Any) -> None:
        found = getattr(message, name)
        found.SetInParent()
        fill(found, value)

    return put_message


def _filler(value: Value) -> Callable[[Message, Any], None]:
    match value.kind:
        case Kind.WRAPPER:
            return lambda message, found: setattr(message, "value", found)
        case Kind.TIMESTAMP | Kind.DURATION:
            return _time_filler(value)
        case _:
            setters = [(field.name, _setter(field)) for field in value.fields]

            def fill(message: Message, row: dict[str, Any]) -> None:
                for name, put in setters:
                    if row[name] is not None:
                        put(message, row[name])

            return fill


def _time_filler(value: Value) -> Callable[[Any, Any], None]:
    per_second, nanos_each = _UNITS[value.type.unit]

    def fill(message: Any, number: int) -> None:
        seconds, part = divmod(number, per_second)
        if value.kind is Kind.DURATION and seconds < 0 and part:
            # Of a duration both have one sign.
            seconds, part = seconds + 1, part - per_second
        message.seconds, message.nanos = seconds, part * nanos_each

    return fill
