"""A client of schema registries, and the framing of messages that name their schema by a number."""

from arroyo_formats.registry.client import Reference, RegisteredSchema, SchemaRegistry, UnknownSchemaError
from arroyo_formats.registry.framing import Framed, frame, header, split
from arroyo_formats.registry.settings import resolve_registry, with_subject

__all__ = [
    "Framed",
    "Reference",
    "RegisteredSchema",
    "SchemaRegistry",
    "UnknownSchemaError",
    "frame",
    "header",
    "resolve_registry",
    "split",
    "with_subject",
]
