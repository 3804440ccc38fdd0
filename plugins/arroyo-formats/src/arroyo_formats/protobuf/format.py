"""The format `protobuf`."""

from __future__ import annotations

import base64
from typing import ClassVar

import pyarrow as pa

from arroyo_core.errors import ConfigError
from arroyo_formats.columns import check_columns
from arroyo_formats.driver_files import driver_path
from arroyo_formats.format import Format, MessageReader, MessageWriter
from arroyo_formats.protobuf.compiling import ProtoError, compile_file, compile_texts, from_base64
from arroyo_formats.protobuf.descriptors import message_names
from arroyo_formats.protobuf.message_type import message_type
from arroyo_formats.protobuf.reading import ProtobufReader
from arroyo_formats.protobuf.shape import arrow_schema
from arroyo_formats.protobuf.writing import ProtobufWriter, fit_columns
from arroyo_formats.registry import SchemaRegistry, UnknownSchemaError, resolve_registry, with_subject
from arroyo_formats.registry.client import PROTOBUF
from arroyo_formats.schemas_pb2 import ProtobufSettings, SchemaFile

_REGISTERED = "schema.proto"


class ProtobufFormat(Format):
    """Protobuf, each message one of a type that a `.proto` file has."""

    name: ClassVar[str] = "protobuf"
    settings_type = ProtobufSettings

    def for_topic(self, settings: ProtobufSettings, topic: str, part: str) -> ProtobufSettings:
        return with_subject(settings, topic, part)  # type: ignore[no-any-return]

    def resolve(self, settings: ProtobufSettings) -> ProtobufSettings:
        found = ProtobufSettings()
        found.CopyFrom(settings)
        if found.HasField("registry"):
            resolve_registry(found.registry)
        if found.schema_file and found.descriptor_set:
            raise ConfigError("schema_file and descriptor_set exclude each other", field="schema_file")
        field = "schema_file" if found.schema_file else "descriptor_set" if found.descriptor_set else "registry"
        try:
            _compile(found)
            names = message_names(from_base64(found.descriptor_set))
        except ProtoError as error:
            raise ConfigError(f"the schema cannot be used: {error}", field=field) from error
        if not names:
            raise ConfigError("the schema has no message", field=field)
        found.message = found.message or names[0]
        if found.message not in names:
            raise ConfigError(
                f"the schema has no message {found.message!r}", field="message", value=found.message, allowed=names
            )
        return found

    def schema(self, settings: ProtobufSettings, declared: pa.Schema | None) -> pa.Schema:
        found = arrow_schema(message_type(settings, declared).fields)
        if declared is None:
            return found
        check_columns(found, declared)
        return declared

    def reader(self, settings: ProtobufSettings, schema: pa.Schema) -> MessageReader:
        return ProtobufReader(settings, message_type(settings, schema), schema)

    def writer(self, settings: ProtobufSettings, schema: pa.Schema) -> MessageWriter:
        kind = message_type(settings, schema)
        fit_columns(kind, schema)
        writer = ProtobufWriter(settings, kind, schema)
        writer.check()
        return writer


def _compile(settings: ProtobufSettings) -> None:
    """Put the compiled files in, and their texts; raises `ProtoError`."""
    if settings.descriptor_set:
        return
    if settings.schema_file:
        compiled, texts = compile_file(driver_path(settings.schema_file))
        settings.schema_file = ""
    elif settings.registry.subject:
        texts = _registered(settings)
        compiled = compile_texts(dict(texts), texts[-1][0])
    else:
        raise ConfigError(
            "protobuf needs a schema_file, a descriptor_set, or a registry with a subject", field="schema_file"
        )
    settings.descriptor_set = base64.b64encode(compiled.SerializeToString()).decode()
    settings.files.extend(SchemaFile(name=name, text=text) for name, text in texts)


def _registered(settings: ProtobufSettings) -> list[tuple[str, str]]:
    registry = settings.registry
    client = SchemaRegistry.of(registry)
    try:
        found = client.version(registry.subject, registry.version)
        if found.kind != PROTOBUF:
            raise ConfigError(f"subject {registry.subject!r} has schemas of {found.kind}", field="registry.subject")
        settings.schema_id = found.id or 0
        return [*client.referenced(found), (_REGISTERED, found.text)]
    except UnknownSchemaError as error:
        raise ConfigError(f"{error}: give a schema_file", field="registry.subject", value=registry.subject) from error
