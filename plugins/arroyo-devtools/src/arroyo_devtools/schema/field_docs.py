"""The fields of a config message as people are told about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from arroyo_core.api.config_defaults import EMPTY_MESSAGE, default_text
from arroyo_core.pipeline.field_options import (
    INT_RANGES,
    choices_of,
    enum_names,
    format_limit,
    has_option,
    is_map,
    limit,
    writable_fields,
)
from arroyo_core.pipeline.lookup_configs import named_by
from arroyo_core.pipeline.secret_fields import is_secret
from arroyo_core.pipeline.wellknown import WELL_KNOWN
from arroyo_core.plugin import hookspec
from arroyo_core.proto import options_pb2
from arroyo_devtools.schema.offers import Offers
from arroyo_devtools.schema.prose import FieldText, read_field_text

_F = FieldDescriptor
_WELL_KNOWN_TYPES = {
    "Timestamp": "timestamp",
    "Duration": "duration",
    "Struct": "mapping",
    "ListValue": "list",
    "Value": "any value",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceDoc:
    """One name that may be written, and what it means."""

    name: str
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldDoc:
    """One field. `fields` are those of its message, where it has one that is described nowhere above it."""

    name: str
    type: str
    description: str
    is_required: bool
    default: str = ""
    #: What is allowed beyond the type: `from 1 to 100`.
    range: str = ""
    choices: tuple[ChoiceDoc, ...] = ()
    #: Whether other names than the choices are allowed.
    is_open: bool = False
    #: Whether it may also be a mapping; with `name` and settings, where the choices are what a hook gives.
    takes_mapping: bool = False
    hook: str = ""
    fields: tuple[FieldDoc, ...] = ()
    is_secret: bool = False


def describe_fields(
    descriptor: Descriptor, comments: Mapping[str, str], offers: Offers, above: tuple[str, ...] = ()
) -> tuple[FieldDoc, ...]:
    """The fields that YAML may have, in the order of the message; `above` are the messages that hold this one."""
    inside = (*above, descriptor.full_name)
    return tuple(_describe_field(field, comments, offers, inside) for field in writable_fields(descriptor).values())


def describe_choices(enum: EnumDescriptor, names: Mapping[str, int], comments: Mapping[str, str]) -> list[ChoiceDoc]:
    """The names of an enum with the comments of their values."""
    return [
        ChoiceDoc(
            name=name,
            description=read_field_text(comments.get(f"{enum.full_name}.{value.name}", "")).description,
        )
        for name, number in names.items()
        if (value := enum.values_by_number[number])
    ]


def field_choices(field: FieldDescriptor, comments: Mapping[str, str], offers: Offers) -> tuple[list[ChoiceDoc], bool]:
    """What may be written in a field of an enum, or in a text that names one; and whether other texts may, too."""
    if field.enum_type is not None:
        return describe_choices(field.enum_type, enum_names(field.enum_type), comments), False
    hook = offering_hook(field)
    if hook:
        return [ChoiceDoc(name=offer.name, description=offer.text.summary) for offer in offers.of(hook)], False
    if _names_lookup(field):
        return [ChoiceDoc(name=offer.name, description=offer.text.summary) for offer in offers.lookups()], True
    for option in (options_pb2.choices, options_pb2.suggestions):
        enum = choices_of(field, option)
        if enum is not None:
            names = {value.name: value.number for value in enum.values}
            return describe_choices(enum, names, comments), option is options_pb2.suggestions
    return [], False


def _names_lookup(field: FieldDescriptor) -> bool:
    """Whether a field beside it holds the config of the lookup that it names."""
    beside = field.containing_type.fields if field.containing_type is not None else ()
    return any(named_by(other) == field.name for other in beside)


def offering_hook(field: FieldDescriptor) -> str:
    """The hook that gives what the field chooses from; empty where none does."""
    name = suggestions_name(field)
    return name if hasattr(hookspec, name) and is_any_value(field) else ""


def suggestions_name(field: FieldDescriptor) -> str:
    """What the option `suggestions` names: an enum, or a hook; empty where the field has none."""
    option: Any = options_pb2.suggestions
    return str(field.GetOptions().Extensions[option])


def is_any_value(field: FieldDescriptor) -> bool:
    """Whether it is a `google.protobuf.Value`: a text, a mapping, whatever YAML has."""
    return field.message_type is not None and field.message_type.full_name == "google.protobuf.Value"


def _describe_field(
    field: FieldDescriptor, comments: Mapping[str, str], offers: Offers, above: tuple[str, ...]
) -> FieldDoc:
    text = read_field_text(comments.get(field.full_name, ""))
    choices, is_open = field_choices(field, comments, offers)
    message = field.message_type
    is_described = message is not None and (
        message.full_name in WELL_KNOWN or is_map(field) or message.full_name in above
    )
    nested = () if message is None or is_described else describe_fields(message, comments, offers, above)
    return FieldDoc(
        name=field.name,
        type=type_words(field),
        description=text.description,
        is_required=has_option(field, options_pb2.required),
        default=default_words(field, text),
        range=_range(field),
        choices=tuple(choices),
        is_open=is_open,
        takes_mapping=bool(choices) and is_any_value(field),
        hook=offering_hook(field),
        fields=nested,
        is_secret=is_secret(field),
    )


def default_words(field: FieldDescriptor, text: FieldText) -> str:
    """What the field holds where it is not written; else what the comment says of it."""
    default = default_text(field)
    if default is None:
        return text.default_words
    if default == EMPTY_MESSAGE and field.message_type is not None:
        inner = [(each.name, default_words(each, FieldText())) for each in field.message_type.fields]
        return ", ".join(f"{name}: {words}" for name, words in inner if words)
    is_free_text = field.type == _F.TYPE_STRING and choices_of(field, options_pb2.choices) is None
    return f"`{default}`" if is_free_text else default


def type_words(field: FieldDescriptor) -> str:
    """`list of string`, `duration`, `mapping of name to sql`."""
    if is_map(field):
        assert field.message_type is not None
        key, value = field.message_type.fields
        return f"mapping of {_single(key)} to {_single(value)}"
    if field.is_repeated and has_option(field, options_pb2.ordered_map):
        assert field.message_type is not None
        key, value = field.message_type.fields
        return f"mapping of {key.name} to {value.name}"
    return f"list of {_single(field)}" if field.is_repeated else _single(field)


def _single(field: FieldDescriptor) -> str:
    for option in (options_pb2.duration, options_pb2.size):
        if has_option(field, option):
            return str(option.name)
    if is_any_value(field) and suggestions_name(field):
        return "string or mapping"
    if field.message_type is not None:
        name = field.message_type.name
        return _WELL_KNOWN_TYPES.get(name, "mapping") if field.message_type.full_name in WELL_KNOWN else "mapping"
    if field.cpp_type in INT_RANGES:
        return "integer"
    if field.cpp_type in (_F.CPPTYPE_FLOAT, _F.CPPTYPE_DOUBLE):
        return "number"
    if field.cpp_type == _F.CPPTYPE_BOOL:
        return "boolean"
    if field.type == _F.TYPE_BYTES:
        return "bytes in base64"
    return "string"


def _range(field: FieldDescriptor) -> str:
    least, greatest = limit(field, options_pb2.least), limit(field, options_pb2.greatest)
    if field.cpp_type in INT_RANGES and INT_RANGES[field.cpp_type][0] == 0 and least is None:
        least = 0
    low, high = (None if bound is None else format_limit(field, bound) for bound in (least, greatest))
    if low is not None and high is not None:
        return f"from {low} to {high}"
    if high is not None:
        return f"at most {high}"
    if low is None:
        return ""
    return "more than 0" if least == 1 and _single(field) in ("duration", "size") else f"at least {low}"
