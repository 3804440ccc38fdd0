"""Protobuf's well-known messages, which have a JSON form of their own."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from arroyo_core.pipeline.document import Scalar, YamlList, YamlMap, YamlValue, describe, shown
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.pipeline.values import (
    read_base64,
    read_bool,
    read_duration_us,
    read_float,
    read_int,
    read_string,
)

_PACKAGE = "google.protobuf."
_WRAPPERS = {
    f"{_PACKAGE}{name}Value"
    for name in ("Bool", "Bytes", "Double", "Float", "Int32", "Int64", "String", "UInt32", "UInt64")
}
#: Those of any form: what they hold is known to their reader only.
DYNAMIC = frozenset(f"{_PACKAGE}{name}" for name in ("Struct", "Value", "ListValue"))
_OTHERS = {f"{_PACKAGE}{name}" for name in ("Any", "Duration", "FieldMask", "Timestamp")}
WELL_KNOWN = frozenset(_WRAPPERS | DYNAMIC | _OTHERS)


def read_well_known(value: YamlValue, message: Message, *, what: str, mistakes: Mistakes) -> None:
    """Fill `message`, one of `WELL_KNOWN`, from its JSON form; record the mistake otherwise."""
    name = message.DESCRIPTOR.full_name
    if name in _WRAPPERS:
        _read_wrapper(value, message, what=what, mistakes=mistakes)
    elif name == f"{_PACKAGE}Duration":
        _read_duration(value, message, what=what, mistakes=mistakes)
    elif name in DYNAMIC:
        _read_dynamic(value, message, what=what, mistakes=mistakes)
    else:
        _read_json(value, message, what=what, mistakes=mistakes)


def plain(value: YamlValue) -> Any:
    """A value as Python's own lists, dicts and scalars."""
    if isinstance(value, YamlList):
        return [plain(item) for item in value.items]
    if isinstance(value, YamlMap):
        return {entry.key: plain(entry.value) for entry in value.entries}
    return value.value


def _read_wrapper(value: YamlValue, message: Any, *, what: str, mistakes: Mistakes) -> None:
    field = message.DESCRIPTOR.fields_by_name["value"]
    kind = field.cpp_type
    inner: object
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        inner = read_bool(value, what, mistakes)
    elif kind in (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT):
        inner = read_float(value, what, mistakes, is_single=kind == FieldDescriptor.CPPTYPE_FLOAT)
    elif kind == FieldDescriptor.CPPTYPE_STRING:
        read = read_base64 if field.type == FieldDescriptor.TYPE_BYTES else read_string
        inner = read(value, what, mistakes)
    else:
        is_signed = kind in (FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_INT64)
        bits = 32 if kind in (FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_UINT32) else 64
        least, greatest = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if is_signed else (0, 2**bits - 1)
        inner = read_int(value, what, mistakes, least=least, greatest=greatest)
    if inner is not None:
        message.value = inner


def _read_duration(value: YamlValue, message: Any, *, what: str, mistakes: Mistakes) -> None:
    duration_us = read_duration_us(value, what, mistakes)
    if duration_us is not None:
        message.FromMicroseconds(duration_us)


def _read_dynamic(value: YamlValue, message: Message, *, what: str, mistakes: Mistakes) -> None:
    wanted = {f"{_PACKAGE}Struct": (YamlMap, "a mapping"), f"{_PACKAGE}ListValue": (YamlList, "a list")}
    kind, form = wanted.get(message.DESCRIPTOR.full_name, (object, ""))
    if not isinstance(value, kind):
        mistakes.add(f"{what} must be {form}, not {describe(value)}", at=value.at, value=shown(value))
        return
    # Protobuf would take it, and fail to show the message as JSON.
    endless = next(_not_finite(value), None)
    if endless is not None:
        problem = f"{what} cannot hold {describe(endless)}, which is not finite"
        mistakes.add(problem, at=endless.at, value=shown(endless))
        return
    _read_json(value, message, what=what, mistakes=mistakes)


def _not_finite(value: YamlValue) -> Iterator[Scalar]:
    if isinstance(value, YamlList):
        for item in value.items:
            yield from _not_finite(item)
    elif isinstance(value, YamlMap):
        for entry in value.entries:
            yield from _not_finite(entry.value)
    elif isinstance(value.value, float) and not math.isfinite(value.value):
        yield value


def _read_json(value: YamlValue, message: Message, *, what: str, mistakes: Mistakes) -> None:
    try:
        json_format.ParseDict(plain(value), message)
    except (json_format.ParseError, ValueError, TypeError, OverflowError):
        # Protobuf's own words quote the value, which may come from the environment.
        short = message.DESCRIPTOR.name
        example = ", such as 2026-01-31T12:00:00Z" if short == "Timestamp" else ""
        mistakes.add(
            f"{what} must be a google.protobuf.{short}{example}, not {describe(value)}",
            at=value.at,
            value=shown(value) if isinstance(value, Scalar) else None,
        )
