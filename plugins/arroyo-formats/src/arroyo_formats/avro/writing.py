"""Writes rows as Avro messages."""

from __future__ import annotations

import json

import pyarrow as pa

from arroyo_core.errors import ConfigError
from arroyo_formats.avro.arrow_types import avro_schema
from arroyo_formats.avro.encoding import Encoding
from arroyo_formats.avro.reading import single_object_mark
from arroyo_formats.avro.schema import Record, SchemaError, parse
from arroyo_formats.format import Encoded, MessageWriter
from arroyo_formats.registry import CONFLUENT, RegisteredSchema, Registration, frame, header
from arroyo_formats.registry.client import AVRO
from arroyo_formats.schemas_pb2 import AvroSettings


def schema_to_write(settings: AvroSettings, schema: pa.Schema) -> tuple[str, Record]:
    """Text and tree: the schema of the settings, or one of the columns; raises `ConfigError`."""
    text = settings.schema or json.dumps(avro_schema(schema))
    try:
        return text, parse(text)
    except SchemaError as error:
        raise ConfigError(f"the schema cannot be used: {error}", field="format.schema") from error


class AvroWriter(MessageWriter):
    """Writes rows with one schema, which the registry gets with the first of them."""

    def __init__(self, settings: AvroSettings, text: str, record: Record) -> None:
        """Raises `ConfigError` where the registry would refuse the schema; changes nothing there."""
        self._encoding = Encoding(record)
        self._prefix = single_object_mark(text) if settings.framing == "single_object" else b""
        self._registration = None
        if settings.framing == CONFLUENT:
            self._registration = Registration.of(settings.registry, RegisteredSchema(AVRO, text))
            self._registration.check()

    def write(self, batch: pa.RecordBatch) -> Encoded:
        if self._registration is not None and not self._prefix:
            self._prefix = header(self._registration.number())
        values = self._encoding.encode(batch)
        return Encoded(frame(values, self._prefix) if self._prefix else values)
