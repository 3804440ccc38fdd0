"""Configs of lookups inside the config of an operator: fields that are marked `(arroyo_core.config_of)`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, cast

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from arroyo_core.api import LookupConstructor, Registry
from arroyo_core.errors import ConfigError
from arroyo_core.pipeline.document import Entry, Scalar, is_unresolved
from arroyo_core.pipeline.field_options import OptionError, is_map
from arroyo_core.proto import options_pb2

Lookups = Mapping[str, LookupConstructor[Any]]


@cache
def named_by(field: FieldDescriptor) -> str:
    """The field beside this one that names the lookup whose config it holds; empty for all other fields."""
    name = str(field.GetOptions().Extensions[cast(Any, options_pb2.config_of)])
    if name and (field.message_type is None or field.message_type.full_name != AnyMessage.DESCRIPTOR.full_name):
        raise OptionError(f"field {field.full_name} is a config_of, so it must be a google.protobuf.Any")
    return name


def written_lookup(field: FieldDescriptor, entries: Iterable[Entry]) -> Scalar | None:
    """The name of the lookup as it is written beside its config; None where it is not, or not known yet."""
    naming = cast(Descriptor, field.containing_type).fields_by_name[named_by(field)]
    for entry in entries:
        if entry.key in (naming.name, naming.json_name) and isinstance(entry.value, Scalar):
            return None if is_unresolved(entry.value) or entry.value.is_null else entry.value
    return None


def pack(config: Message, into: Message) -> None:
    """The same bytes for the same config: plans are compared by them."""
    cast(AnyMessage, into).Pack(config, deterministic=True)


def unpack(holder: Message) -> Message | None:
    """The config that a field holds; None for one of a type that this process does not know."""
    held = cast(AnyMessage, holder)
    try:
        found = GetMessageClass(AnyMessage.DESCRIPTOR.file.pool.FindMessageTypeByName(held.TypeName()))()
    except KeyError:
        return None
    held.Unpack(found)
    return found


def resolve_lookups(config: Message, registry: Registry) -> Message:
    """A copy of an operator's config in which the lookups have resolved theirs; raises `ConfigError`. On the driver."""
    resolved = type(config)()
    resolved.CopyFrom(config)
    _resolve(resolved, registry, parent="")
    return resolved


def _resolve(message: Message, registry: Registry, *, parent: str) -> None:
    for field, value in message.ListFields():
        if field.message_type is None or is_map(field):
            continue
        for place, item in enumerate(value if field.is_repeated else [value]):
            path = f"{parent}{field.name}[{place}]" if field.is_repeated else f"{parent}{field.name}"
            naming = named_by(field)
            if not naming:
                _resolve(item, registry, parent=f"{path}.")
                continue
            # Of a name that is not registered the operator's constructor says so.
            constructor, found = registry.lookups.get(getattr(message, naming)), unpack(item)
            if constructor is not None and isinstance(found, constructor.config_type):
                try:
                    pack(constructor.resolve(found), item)
                except ConfigError as error:
                    raise error.within(path) from error
