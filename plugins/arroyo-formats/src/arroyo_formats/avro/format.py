"""The format `avro`."""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa

from arroyo_core.errors import ConfigError
from arroyo_formats.avro.arrow_types import arrow_schema
from arroyo_formats.avro.encoding import fit_columns
from arroyo_formats.avro.files import AvroFiles
from arroyo_formats.avro.reading import AvroReader
from arroyo_formats.avro.schema import Record, SchemaError, parse
from arroyo_formats.avro.writing import AvroWriter, schema_to_write
from arroyo_formats.columns import check_columns
from arroyo_formats.format import Format, MessageReader, MessageWriter
from arroyo_formats.registry import CONFLUENT, NONE, missing_columns, resolve_schema, with_subject
from arroyo_formats.registry.client import AVRO
from arroyo_formats.schemas_pb2 import AvroSettings

FRAMINGS = (NONE, CONFLUENT, "single_object")


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
        resolve_schema(found, kind=AVRO, framings=FRAMINGS)
        if found.schema:
            _parsed(found)
        return found

    def schema(self, settings: AvroSettings, declared: pa.Schema | None) -> pa.Schema:
        reader = given_schema(settings)
        if declared is not None:
            if reader is not None:
                check_columns(arrow_schema(reader), declared)
            return declared
        if reader is None:
            raise missing_columns(self.name, settings)
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
        return AvroWriter(settings, text, record)


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
