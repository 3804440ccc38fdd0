"""Reads Avro messages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import fastavro.schema
import numpy as np
import pyarrow as pa

from arroyo_formats.avro.arrow_types import arrow_schema
from arroyo_formats.avro.fast import FastDecoder, is_fast
from arroyo_formats.avro.plain import PlainDecoder
from arroyo_formats.avro.resolution import resolve
from arroyo_formats.avro.schema import Record, SchemaError, parse
from arroyo_formats.columns import Gathering, Rows, Step, cast_field
from arroyo_formats.format import BadMessage, Decoded, Indices, MessageReader
from arroyo_formats.registry import SchemaRegistry, UnknownSchemaError, split
from arroyo_formats.schemas_pb2 import AvroSettings

_SINGLE_OBJECT_MARK = b"\xc3\x01"


class Decoder(Protocol):
    """Takes values to storage of their schema."""

    def decode(self, bodies: Sequence[bytes]) -> tuple[pa.StructArray, list[BadMessage]]: ...


def decoder(record: Record) -> Decoder:
    return FastDecoder(record) if is_fast(record) else PlainDecoder(record)


@dataclass(frozen=True, slots=True)
class Reading:
    """How values of one writer's schema are read."""

    decoder: Decoder
    step: Step

    def read(self, bodies: Sequence[bytes], schema: pa.Schema) -> Rows:
        stored, bad = self.decoder.decode(bodies)
        resolved = self.step(stored)
        names = [field.name for field in resolved.values.type]
        columns = []
        for field in schema:
            is_there = field.name in names
            found = resolved.values.field(names.index(field.name)) if is_there else pa.nulls(len(stored), field.type)
            columns.append(cast_field(found, field))
        return Rows(columns, bad, resolved.bad)


class AvroReader(MessageReader):
    """Reads messages of any writer's schema as the columns of one."""

    def __init__(self, settings: AvroSettings, reader: Record | None, schema: pa.Schema) -> None:
        """Without `reader`, the writer's fields are the columns, by name."""
        self.schema = schema
        self._reader = reader
        self._framing = settings.framing
        self._registry = SchemaRegistry.of(settings.registry) if settings.HasField("registry") else None
        self._readings: dict[int, Reading | str] = {}
        self._mark = single_object_mark(settings.schema) if self._framing == "single_object" else b""

    def read(self, messages: Sequence[bytes]) -> Decoded:
        gathering = Gathering(self.schema, len(messages))
        if self._framing == "confluent":
            self._read_framed(messages, gathering)
        else:
            self._read_bare(messages, gathering)
        return gathering.decoded()

    def _read_bare(self, messages: Sequence[bytes], gathering: Gathering) -> None:
        assert self._reader is not None, "the format has refused settings without a schema"
        origins: Indices = np.arange(len(messages))
        if self._mark:
            marked = [message.startswith(self._mark) for message in messages]
            gathering.add_bad([BadMessage(i, _unmarked(messages[i])) for i, is_so in enumerate(marked) if not is_so])
            origins = np.flatnonzero(marked)
            messages = [messages[i][len(self._mark) :] for i in origins.tolist()]
        reading = self._readings.setdefault(0, Reading(decoder(self._reader), resolve(self._reader, self._reader)))
        assert isinstance(reading, Reading)
        gathering.add(reading.read(messages, self.schema), origins)

    def _read_framed(self, messages: Sequence[bytes], gathering: Gathering) -> None:
        framed = split(messages)
        gathering.add_bad(framed.bad)
        for schema_id, places in framed.by_id():
            origins = places if framed.origins is None else framed.origins[places]
            reading = self._reading(schema_id)
            if isinstance(reading, str):
                gathering.add_bad([BadMessage(index, reading) for index in origins.tolist()])
                continue
            is_all = len(places) == len(framed.bodies)
            bodies = framed.bodies if is_all else [framed.bodies[place] for place in places.tolist()]
            gathering.add(reading.read(bodies, self.schema), origins)

    def _reading(self, schema_id: int) -> Reading | str:
        """How values of a schema are read, or why they cannot be. What the registry may still get is asked again."""
        if schema_id in self._readings:
            return self._readings[schema_id]
        assert self._registry is not None, "the format has refused this framing without a registry"
        try:
            found = self._registry.by_id(schema_id)
            references = [text for _, text in self._registry.referenced(found)]
        except UnknownSchemaError as error:
            return str(error)
        if found.kind != "AVRO":
            self._readings[schema_id] = f"schema {schema_id} is of {found.kind}, not Avro"
            return self._readings[schema_id]
        try:
            writer = parse(found.text, references)
            reader = self._reader or writer
            step = resolve(writer, reader)
            _check_missing(reader, self.schema)
            self._readings[schema_id] = Reading(decoder(writer), step)
        except SchemaError as error:
            self._readings[schema_id] = f"schema {schema_id} cannot be read: {error}"
        return self._readings[schema_id]


def _check_missing(reader: Record, schema: pa.Schema) -> None:
    found = arrow_schema(reader).names
    for field in schema:
        if field.name not in found and not field.nullable:
            raise SchemaError(f"it has no field {field.name!r}, and the column cannot be null")


def single_object_mark(schema: str) -> bytes:
    """What stands in front of a value of this schema, in Avro's single-object encoding."""
    canonical = fastavro.schema.to_parsing_canonical_form(fastavro.schema.parse_schema(json.loads(schema)))
    fingerprint = fastavro.schema.fingerprint(canonical, "CRC-64-AVRO")
    return _SINGLE_OBJECT_MARK + bytes.fromhex(fingerprint)


def _unmarked(message: bytes) -> str:
    if not message.startswith(_SINGLE_OBJECT_MARK):
        return "does not begin as a single object of Avro"
    return f"has the fingerprint {message[2:10].hex()}, which is of another schema"
