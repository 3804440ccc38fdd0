"""Defaults of config fields: what the option `(arroyo_core.default)` of `options.proto` declares.

The planner applies them when it reads a config, so that a constructor finds every such field set.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar, cast

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Value
from google.protobuf.timestamp_pb2 import Timestamp

from arroyo_core.api.units import parse_bytes, parse_duration_us
from arroyo_core.proto import options_pb2

_F = FieldDescriptor
_INTEGERS = (_F.CPPTYPE_INT32, _F.CPPTYPE_INT64, _F.CPPTYPE_UINT32, _F.CPPTYPE_UINT64)
_FLOATS = (_F.CPPTYPE_FLOAT, _F.CPPTYPE_DOUBLE)
#: The default of a message: it is there, with the defaults of its fields.
EMPTY_MESSAGE = "{}"

MessageT = TypeVar("MessageT", bound=Message)


class OptionError(Exception):
    """A plugin marked a field with an option that the field's type does not allow."""


def with_defaults(config: MessageT) -> MessageT:
    """A copy of a config that is made in code, with the default of every field that is not set.

    Raises `OptionError` for a default that its field cannot have.
    """
    copy = type(config)()
    copy.CopyFrom(config)
    apply_defaults(copy)
    return copy


def apply_defaults(message: Message) -> None:
    """Set every field that has a default and is not set, in the message and in those that it holds.

    A field without presence counts as not set where it is zero or empty.
    """
    descriptor = cast(Descriptor, message.DESCRIPTOR)
    if descriptor.full_name.startswith("google.protobuf."):
        return
    for field in descriptor.fields:
        if default_text(field) is not None and not _is_set(message, field):
            _set(message, field, default_value(field))
        for nested in _nested(message, field):
            apply_defaults(nested)


def default_text(field: FieldDescriptor) -> str | None:
    """The default of a field as YAML would have it; None where it has none."""
    found = _option(field, options_pb2.default)
    return None if found is None else str(found)


@cache
def default_value(field: FieldDescriptor) -> Any:
    """The default of a field as its message holds it, not to be changed; raises `OptionError` where it cannot."""
    text = default_text(field)
    if text is None:
        raise OptionError(f"field {field.full_name} has no default")
    if field.is_repeated:
        raise OptionError(f"field {field.full_name} is repeated, so it cannot have a default")
    try:
        value = parse_value(field, text)
    except ValueError as error:
        raise OptionError(f"field {field.full_name} cannot have the default {text!r}: {error}") from error
    _check_limits(field, text, value)
    return value


def parse_value(field: FieldDescriptor, text: str) -> Any:
    """What a text of YAML means in a field that is not repeated; raises `ValueError`."""
    kind = field.cpp_type
    if _option(field, options_pb2.duration):
        return parse_duration_us(text)
    if _option(field, options_pb2.size):
        return parse_bytes(text)
    if kind in _INTEGERS:
        return int(text)
    if kind in _FLOATS:
        return float(text)
    if field.enum_type is not None:
        return _chosen(text, enum_names(field.enum_type))
    if kind == _F.CPPTYPE_BOOL:
        return _chosen(text, {"true": True, "false": False})
    if field.message_type is not None:
        return _parse_message(field.message_type, text)
    if field.type == _F.TYPE_BYTES:
        raise ValueError("it is bytes")
    return text


def enum_names(enum: EnumDescriptor) -> dict[str, int]:
    """The names a YAML file may use, in lower case, without the enum's name as a prefix.

    The value 0 called UNSPECIFIED means that nothing was written, and cannot be written.
    """
    prefix = _upper_snake(enum.name) + "_"
    names = [value.name for value in enum.values]
    cut = len(prefix) if all(name.startswith(prefix) for name in names) else 0
    short = {value.name[cut:].lower(): value.number for value in enum.values}
    return {name: number for name, number in short.items() if not (number == 0 and name.endswith("unspecified"))}


def _is_set(message: Message, field: FieldDescriptor) -> bool:
    oneof = field.containing_oneof
    if oneof is not None:
        # Of fields that exclude each other, one that is written leaves no place for a default.
        return message.WhichOneof(oneof.name) is not None
    return message.HasField(field.name) if field.has_presence else bool(getattr(message, field.name))


def _set(message: Message, field: FieldDescriptor, value: Any) -> None:
    if field.message_type is None:
        setattr(message, field.name, value)
        return
    nested = getattr(message, field.name)
    nested.SetInParent()
    if value is not None:
        nested.CopyFrom(value)


def _nested(message: Message, field: FieldDescriptor) -> list[Message]:
    if field.message_type is None:
        return []
    held = getattr(message, field.name)
    if not field.is_repeated:
        return [held] if message.HasField(field.name) else []
    if not field.message_type.GetOptions().map_entry:
        return list(held)
    return list(held.values()) if field.message_type.fields_by_name["value"].message_type is not None else []


def _parse_message(kind: Descriptor, text: str) -> Message | None:
    if kind.full_name == "google.protobuf.Timestamp":
        moment = Timestamp()
        moment.FromJsonString(text)
        return moment
    if kind.full_name == "google.protobuf.Value":
        return Value(string_value=text)
    if text == EMPTY_MESSAGE and not kind.full_name.startswith("google.protobuf."):
        return None
    raise ValueError(f"a {kind.name} can only have {EMPTY_MESSAGE}, a Timestamp a time, and a Value a text")


def _chosen(text: str, choices: dict[str, Any]) -> Any:
    if text not in choices:
        raise ValueError(f"it must be one of {', '.join(choices)}")
    return choices[text]


def _check_limits(field: FieldDescriptor, text: str, value: Any) -> None:
    for option, sign in ((options_pb2.least, 1), (options_pb2.greatest, -1)):
        bound = _option(field, option)
        if bound is not None and sign * value < sign * bound:
            raise OptionError(f"the default {text!r} of field {field.full_name} is out of the range that it declares")


@cache
def _option(field: FieldDescriptor, option: Any) -> Any:
    """None where the field is not marked with the option."""
    options = field.GetOptions()
    return options.Extensions[option] if options.HasExtension(option) else None


def _upper_snake(name: str) -> str:
    return "".join(f"_{letter}" if letter.isupper() and place else letter for place, letter in enumerate(name)).upper()
