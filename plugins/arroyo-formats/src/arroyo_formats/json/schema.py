"""The JSON Schema of the settings: what columns it has, and whether rows can be written by it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa

from arroyo_core.errors import ConfigError
from arroyo_formats.format import MessageReader, MessageWriter
from arroyo_formats.json_schema import JsonSchemaError, arrow_schema, json_schema
from arroyo_formats.registry import CONFLUENT, FramedReader, FramedWriter, RegisteredSchema, Registration
from arroyo_formats.registry.client import JSON


def check_text(settings: Any) -> None:
    """Raise `ConfigError` for a `schema` that is no JSON object. What else is in it may be more than columns can be."""
    try:
        found = json.loads(settings.schema)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"the schema is not JSON: {error}", field="schema") from error
    if not isinstance(found, dict):
        raise ConfigError("a JSON Schema with columns is a JSON object", field="schema")


def given_columns(settings: Any, only: Collection[str] | None = None) -> pa.Schema | None:
    """The columns of the schema that the settings or the registry have, None where there is none.

    `only` names the properties that count. Raises `ConfigError` where values of a property have no type.
    """
    registered = settings.registered
    text = settings.schema or registered.text
    if not text:
        return None
    references = {} if settings.schema else {each.name: each.text for each in registered.references}
    try:
        return arrow_schema(text, references, only=only)
    except JsonSchemaError as error:
        raise ConfigError(
            f"the schema does not tell the columns: {error}; declare them",
            field="format.schema" if settings.schema else "format.registry",
        ) from error


def check_written(settings: Any, columns: pa.Schema) -> None:
    """Raise `ConfigError` for columns that the schema of the settings does not allow, as far as types tell it."""
    if not settings.schema:
        return
    root = json.loads(settings.schema)
    _check_required(root, columns)
    try:
        given = arrow_schema(settings.schema, only=columns.names)
    except JsonSchemaError:
        # It allows more than columns can be, so there is nothing to hold them against.
        return
    for column in columns:
        if column.name not in given.names:
            raise ConfigError(
                f"the schema has no property {column.name!r}",
                field="format.schema",
                value=column.name,
                allowed=list(root.get("properties", ())),
            )
        if not _fits(given.field(column.name).type, column.type):
            raise ConfigError(
                f"column {column.name!r} is {column.type}, and the schema has {given.field(column.name).type}",
                field="format.schema",
                value=column.name,
            )


def framed_reader(settings: Any, values: MessageReader) -> MessageReader:
    """The reader of messages that are framed as the settings say."""
    return FramedReader(values) if settings.framing == CONFLUENT else values


def framed_writer(settings: Any, values: MessageWriter, columns: pa.Schema) -> MessageWriter:
    """The writer of such messages; `columns` are what is written. Raises `ConfigError`, also for the registry."""
    check_written(settings, columns)
    if settings.framing != CONFLUENT:
        return values
    schema = RegisteredSchema(JSON, settings.schema or json_schema(columns))
    registration = Registration.of(settings.registry, schema)
    registration.check()
    return FramedWriter(values, registration)


def _check_required(root: Mapping[str, Any], columns: pa.Schema) -> None:
    required = root.get("required")
    # In the oldest drafts it is a flag of a property.
    for name in required if isinstance(required, list) else ():
        if name not in columns.names:
            raise ConfigError(
                f"the schema requires {name!r}, and there is no such column",
                field="format.schema",
                value=name,
                allowed=columns.names,
            )


def _fits(given: pa.DataType, written: pa.DataType) -> bool:
    """Whether values of a column are what a property of the type `given` may be; null is not looked at."""
    if pa.types.is_dictionary(written):
        return _fits(given, written.value_type)
    if pa.types.is_null(written):
        return True
    if pa.types.is_list(given):
        return bool(_is_list(written)) and _fits(given.value_type, written.value_type)
    if pa.types.is_struct(given):
        types = {field.name: field.type for field in given}
        return bool(pa.types.is_struct(written)) and all(
            field.name in types and _fits(types[field.name], field.type) for field in written
        )
    if pa.types.is_map(given):
        items = [field.type for field in written] if pa.types.is_struct(written) else []
        items += [written.item_type] if pa.types.is_map(written) else []
        return bool(items) and all(_fits(given.item_type, item) for item in items)
    return not pa.types.is_nested(written) and _kind(written) in _ALLOWED.get(_kind(given), ())


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


#: For kinds of properties the kinds of columns that are written so. Texts may be anything that is written as text.
_ALLOWED = {
    "boolean": ("boolean",),
    "integer": ("integer",),
    "number": ("integer", "number"),
    "text": ("text", "timestamp", "date", "time"),
    "timestamp": ("text", "timestamp"),
    "date": ("text", "date"),
    "time": ("text", "time"),
}


def _kind(kind: pa.DataType) -> str:
    checks = {
        "boolean": pa.types.is_boolean,
        "integer": pa.types.is_integer,
        "number": pa.types.is_floating,
        "timestamp": pa.types.is_timestamp,
        "date": pa.types.is_date,
        "time": pa.types.is_time,
        "null": pa.types.is_null,
    }
    # Decimals are written as strings.
    return next((name for name, check in checks.items() if check(kind)), "text")
