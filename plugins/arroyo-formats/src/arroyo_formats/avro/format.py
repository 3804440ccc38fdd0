"""The format `avro`."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from arroyo_core.errors import ConfigError
from arroyo_formats.avro.arrow_types import arrow_schema
from arroyo_formats.avro.encoding import fit_columns
from arroyo_formats.avro.files import AvroFiles
from arroyo_formats.avro.reading import AvroReader
from arroyo_formats.avro.schema import Record, SchemaError, parse
from arroyo_formats.avro.writing import AvroWriter, schema_to_write
from arroyo_formats.format import Format, MessageReader, MessageWriter
from arroyo_formats.registry import SchemaRegistry, UnknownSchemaError, resolve_registry, with_subject
from arroyo_formats.registry.client import AVRO
from arroyo_formats.schemas_pb2 import AvroSettings, SchemaFile

NONE, CONFLUENT, SINGLE_OBJECT = "none", "confluent", "single_object"
FRAMINGS = (NONE, CONFLUENT, SINGLE_OBJECT)


class AvroFormat(Format):
    """Binary Avro: each message one value; object container files of many."""

    name: ClassVar[str] = "avro"
    settings_type = AvroSettings
    files = AvroFiles()

    def for_topic(self, settings: AvroSettings, topic: str, part: str) -> AvroSettings:
        return with_subject(settings, topic, part)  # type: ignore[no-any-return]

    def resolve(self, settings: AvroSettings) -> AvroSettings:
        found = AvroSettings()
        found.CopyFrom(settings)
        if found.schema and found.schema_file:
            raise ConfigError("schema and schema_file exclude each other", field="schema_file")
        if found.schema_file:
            found.schema = _read(found.schema_file)
            found.schema_file = ""
        has_registry = found.HasField("registry")
        found.framing = found.framing or (CONFLUENT if has_registry else NONE)
        if found.framing not in FRAMINGS:
            raise ConfigError(
                f"there is no framing {found.framing!r}", field="framing", value=found.framing, allowed=FRAMINGS
            )
        if found.framing == CONFLUENT and not has_registry:
            raise ConfigError("framing confluent needs a registry, which has the schemas", field="registry")
        if has_registry:
            resolve_registry(found.registry)
            _ask_registry(found)
        if found.schema:
            _parsed(found)
        return found

    def schema(self, settings: AvroSettings, declared: pa.Schema | None) -> pa.Schema:
        reader = given_schema(settings)
        if declared is not None:
            if reader is not None:
                _check_columns(arrow_schema(reader), declared)
            return declared
        if reader is None:
            if settings.registry.subject:
                raise ConfigError(
                    f"the schema registry has no subject {settings.registry.subject!r}, version "
                    f"{settings.registry.version}: declare the columns, or give a schema",
                    field="format.registry.subject",
                    value=settings.registry.subject,
                )
            raise ConfigError("avro needs a schema, a schema_file, a registry or declared columns", field="schema")
        return arrow_schema(reader)

    def reader(self, settings: AvroSettings, schema: pa.Schema) -> MessageReader:
        if settings.framing != CONFLUENT and given_schema(settings) is None:
            raise ConfigError(
                "avro messages without a registry need the schema that they were written with", field="format.schema"
            )
        return AvroReader(settings, given_schema(settings), schema)

    def writer(self, settings: AvroSettings, schema: pa.Schema) -> MessageWriter:
        text, record = schema_to_write(settings, schema)
        fit_columns(record, schema)
        writer = AvroWriter(settings, text, record)
        writer.check()
        return writer


def given_schema(settings: AvroSettings) -> Record | None:
    """The schema that rows are read as, where the settings or the registry have one."""
    if settings.schema or settings.registered.text:
        return _parsed(settings)
    return None


def _parsed(settings: AvroSettings) -> Record:
    registered = settings.registered
    try:
        if settings.schema:
            return parse(settings.schema)
        return parse(registered.text, [reference.text for reference in registered.references])
    except SchemaError as error:
        raise ConfigError(
            f"the schema cannot be used: {error}", field="format.schema" if settings.schema else "format.registry"
        ) from error


def _ask_registry(settings: AvroSettings) -> None:
    """Put the version of the subject in, where rows are read as that. A subject that is not there yet is no mistake."""
    registry = settings.registry
    if settings.schema or not registry.subject or settings.HasField("registered"):
        return
    # Also where there is nothing: what is resolved once stays as it is.
    settings.registered.SetInParent()
    client = SchemaRegistry.of(registry)
    try:
        found = client.version(registry.subject, registry.version)
    except UnknownSchemaError:
        return
    if found.kind != AVRO:
        raise ConfigError(f"subject {registry.subject!r} has schemas of {found.kind}", field="registry.subject")
    settings.registered.text = found.text
    for name, text in client.referenced(found):
        settings.registered.references.append(SchemaFile(name=name, text=text))


def _check_columns(found: pa.Schema, declared: pa.Schema) -> None:
    for field in declared:
        if field.name not in found.names and not field.nullable:
            raise ConfigError(
                f"the Avro schema has no field {field.name!r}, and the column cannot be null",
                field="schema",
                value=field.name,
                allowed=found.names,
            )


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}", field="schema_file", value=path) from error
