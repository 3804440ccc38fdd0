"""A client of schema registries, and the framing of messages that name their schema by a number."""

from arroyo_formats.registry.client import Reference, RegisteredSchema, SchemaRegistry, UnknownSchemaError
from arroyo_formats.registry.framed_messages import FramedReader, FramedWriter
from arroyo_formats.registry.framing import Framed, frame, header, split
from arroyo_formats.registry.registration import Registration
from arroyo_formats.registry.schema_settings import CONFLUENT, NONE, missing_columns, resolve_schema
from arroyo_formats.registry.settings import resolve_registry, with_subject

__all__ = [
    "CONFLUENT",
    "NONE",
    "Framed",
    "FramedReader",
    "FramedWriter",
    "Reference",
    "RegisteredSchema",
    "Registration",
    "SchemaRegistry",
    "UnknownSchemaError",
    "frame",
    "header",
    "missing_columns",
    "resolve_registry",
    "resolve_schema",
    "split",
    "with_subject",
]
