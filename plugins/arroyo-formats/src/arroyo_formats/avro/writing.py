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
from arroyo_formats.registry import RegisteredSchema, SchemaRegistry, UnknownSchemaError, frame, header
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
        self._text = text
        self._registry = SchemaRegistry.of(settings.registry) if settings.HasField("registry") else None
        self._subject = settings.registry.subject
        self._may_register = settings.registry.register
        self._is_confluent = settings.framing == "confluent"
        self._encoding = Encoding(record)
        self._prefix = single_object_mark(text) if settings.framing == "single_object" else b""

    def check(self) -> None:
        """Raise `ConfigError` where the registry would refuse the schema; changes nothing."""
        if not self._is_confluent:
            return
        assert self._registry is not None, "the format has refused this framing without a registry"
        if not self._subject:
            raise ConfigError("writing needs the subject of the registry", field="format.registry.subject")
        if self._may_register:
            self._registry.check(self._subject, self._registered())
        else:
            self._known()

    def write(self, batch: pa.RecordBatch) -> Encoded:
        if self._is_confluent and not self._prefix:
            self._prefix = header(self._register())
        values = self._encoding.encode(batch)
        return Encoded(frame(values, self._prefix) if self._prefix else values)

    def _registered(self) -> RegisteredSchema:
        return RegisteredSchema(AVRO, self._text)

    def _register(self) -> int:
        assert self._registry is not None, "the format has refused this framing without a registry"
        return self._registry.register(self._subject, self._registered()) if self._may_register else self._known()

    def _known(self) -> int:
        assert self._registry is not None, "the format has refused this framing without a registry"
        try:
            return self._registry.lookup(self._subject, self._registered())
        except UnknownSchemaError as error:
            raise ConfigError(f"{error}, and register is false", field="format.registry.subject") from error
