"""Options of `WITH (...)` as fields of a config: paths with dots, values as the fields want them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from arroyo_core.api.units import format_duration_us
from arroyo_core.errors import Location
from arroyo_core.pipeline.document import resolve_plain
from arroyo_core.pipeline.field_options import fields_by_key, has_option, is_map, writable_fields
from arroyo_core.proto import options_pb2
from arroyo_sql.script import Option, OptionValue
from arroyo_sql.values import parse_interval_us

_F = FieldDescriptor
_NUMBERS = (
    _F.CPPTYPE_INT32,
    _F.CPPTYPE_INT64,
    _F.CPPTYPE_UINT32,
    _F.CPPTYPE_UINT64,
    _F.CPPTYPE_FLOAT,
    _F.CPPTYPE_DOUBLE,
    _F.CPPTYPE_BOOL,
)
#: Messages whose fields are whatever is written.
_OPEN = ("google.protobuf.Value", "google.protobuf.Struct", "google.protobuf.Any")


@dataclass(frozen=True, slots=True)
class Target:
    """Where an option goes: keys from the outside to the inside, and the field where there is one."""

    keys: tuple[str, ...]
    field: FieldDescriptor | None = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """An option that no field has: the part of its name that is wrong, and what is allowed there."""

    name: str
    choices: tuple[str, ...]


def find_field(descriptor: Descriptor, name: str) -> Target | Unknown:
    """The field that an option of this name is; dots descend into messages and maps."""
    keys: list[str] = []
    rest = name
    while True:
        part, _, rest = rest.partition(".")
        found = fields_by_key(descriptor).get(part)
        if found is None:
            return Unknown(part, tuple(writable_fields(descriptor)))
        keys.append(found.name)
        if not rest:
            return Target(tuple(keys), found)
        if is_map(found) or has_option(found, options_pb2.ordered_map):
            return Target((*keys, rest))
        message = found.message_type
        if message is None or found.is_repeated:
            return Unknown(name, ())
        if message.full_name in _OPEN:
            return Target((*keys, *rest.split(".")))
        descriptor = message


def fitting(value: OptionValue, field: FieldDescriptor | None) -> OptionValue:
    """A value as the field takes it: options are often written as texts."""
    if field is None:
        return value
    if field.is_repeated and not is_map(field):
        items = value if isinstance(value, list) else [value]
        return [_fitting_one(item, field) for item in items]
    return _fitting_one(value, field)


def _fitting_one(value: OptionValue, field: FieldDescriptor) -> OptionValue:
    if isinstance(value, str):
        if has_option(field, options_pb2.duration):
            duration_us = parse_interval_us(value)
            return value if duration_us is None else format_duration_us(duration_us)
        if field.cpp_type in _NUMBERS and not has_option(field, options_pb2.size):
            meaning = resolve_plain(value.strip())
            return value if meaning is None else meaning
    elif field.type == _F.TYPE_STRING and isinstance(value, int | float):
        return ("true" if value else "false") if isinstance(value, bool) else str(value)
    return value


@dataclass(slots=True)
class ConfigDraft:
    """A config that is being put together, with the places of its values."""

    config: dict[str, Any] = field(default_factory=dict)
    places: dict[str, Location] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)

    def has(self, key: str) -> bool:
        return key in self.config

    def put(self, keys: Sequence[str], value: OptionValue | Mapping[str, Any], at: Location) -> bool:
        """Set a value; False where another one is in its way."""
        holder = self.config
        for key in keys[:-1]:
            inner = holder.setdefault(key, {})
            if not isinstance(inner, dict):
                return False
            holder = inner
        if keys[-1] in holder:
            return False
        holder[keys[-1]] = value
        for depth in range(1, len(keys) + 1):
            self.places.setdefault(".".join(keys[:depth]), at)
        return True

    def put_option(self, target: Target, option: Option, value: OptionValue) -> bool:
        is_put = self.put(target.keys, value, option.at)
        if is_put and option.is_secret and option.written is not None:
            self.secrets[".".join(target.keys)] = option.written
        return is_put
