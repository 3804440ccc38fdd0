"""What a config field declares of itself: the options of `options.proto`, and the limits of its type."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, cast

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, OneofDescriptor

from arroyo_core.api.config_defaults import OptionError, default_text, enum_names
from arroyo_core.api.units import format_bytes, format_duration_us
from arroyo_core.proto import options_pb2

__all__ = [
    "INT_RANGES",
    "OptionError",
    "accepts_null",
    "choices_of",
    "enum_names",
    "fields_by_key",
    "format_limit",
    "has_default",
    "has_option",
    "has_unit",
    "is_map",
    "limit",
    "writable_fields",
]

_F = FieldDescriptor
INT_RANGES = {
    _F.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    _F.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    _F.CPPTYPE_UINT32: (0, 2**32 - 1),
    _F.CPPTYPE_UINT64: (0, 2**64 - 1),
}


@cache
def writable_fields(descriptor: Descriptor) -> Mapping[str, FieldDescriptor]:
    """The fields that a YAML file may have, by name, as declared."""
    fields = (field for field in descriptor.fields if not has_option(field, options_pb2.internal))
    return MappingProxyType({field.name: field for field in fields})


@cache
def fields_by_key(descriptor: Descriptor) -> Mapping[str, FieldDescriptor]:
    """The same, by each name that a YAML file may use: as declared, and as JSON has it."""
    fields = writable_fields(descriptor)
    return MappingProxyType({**{field.json_name: field for field in fields.values()}, **fields})


@cache
def has_option(field: FieldDescriptor, option: Any) -> bool:
    """Whether a field is marked with one of the options that are true or false."""
    return bool(field.GetOptions().Extensions[option])


def has_default(oneof: OneofDescriptor) -> bool:
    """Whether one of the fields that exclude each other has a default: then an empty text counts as not written."""
    # An `optional` field is alone in a oneof of its own.
    return len(oneof.fields) > 1 and any(default_text(field) is not None for field in oneof.fields)


def has_unit(field: FieldDescriptor) -> bool:
    """Whether the field is a duration or a size, which are written with a unit."""
    return has_option(field, options_pb2.duration) or has_option(field, options_pb2.size)


@cache
def limit(field: FieldDescriptor, option: Any) -> int | None:
    """The value of `least` or `greatest`, None where the field has none."""
    options = field.GetOptions()
    return int(options.Extensions[option]) if options.HasExtension(option) else None


def format_limit(field: FieldDescriptor, bound: int) -> str:
    """A limit as it would be written."""
    if has_option(field, options_pb2.duration):
        return format_duration_us(bound)
    return format_bytes(bound) if has_option(field, options_pb2.size) else str(bound)


def choices_of(field: FieldDescriptor, option: Any) -> EnumDescriptor | None:
    """The enum that `choices` or `suggestions` names; raises `OptionError` where there is none."""
    name = field.GetOptions().Extensions[option]
    if not name:
        return None
    try:
        return cast(Descriptor, field.containing_type).file.pool.FindEnumTypeByName(name)
    except KeyError as error:
        raise OptionError(f"field {field.full_name} names the enum {name!r}, which does not exist") from error


def is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def accepts_null(field: FieldDescriptor) -> bool:
    if field.enum_type is not None:
        # A choice may be called so: `on_error: null`.
        return "null" in enum_names(field.enum_type)
    return field.message_type is not None and field.message_type.full_name == "google.protobuf.Value"
