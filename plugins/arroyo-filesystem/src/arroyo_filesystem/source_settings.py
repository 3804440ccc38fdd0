"""The config of a source, checked: everything a person can get wrong is found here, before anything runs."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from arroyo_core.errors import ConfigError
from arroyo_filesystem import type_names
from arroyo_filesystem.filesystem_pb2 import ListedFile, SourceConfig
from arroyo_filesystem.formats import csv_lines, json_lines
from arroyo_filesystem.formats.csv_lines import CsvDialect
from arroyo_filesystem.formats.format import Format
from arroyo_filesystem.listing import File, list_files, parse_format, resolve_format
from arroyo_filesystem.location import Location, absolute_path, open_location

MAX_BATCH_ROWS = 2**24


class BadData(StrEnum):
    """What becomes of a line that cannot be read."""

    FAIL = "fail"
    DROP = "drop"
    DEAD_LETTER = "dead_letter"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """A checked config. `schema` is None where it is to be read from the first file."""

    location: Location
    format: Format
    files: tuple[File, ...]
    schema: pa.Schema | None
    columns: tuple[str, ...]
    event_time_field: str | None
    bad_data: BadData
    dead_letter: Location | None
    batch_rows: int
    #: 0 where it is to be chosen from the size of the input.
    split_bytes: int
    dialect: CsvDialect
    #: The columns that make the id of a row of a stream of changes; empty for all.
    primary_key: tuple[str, ...]


def resolve_source(config: SourceConfig) -> SourceConfig:
    """A copy of a config with absolute paths and the listing of files; raises `ConfigError`."""
    if not config.path:
        raise ConfigError("path is needed", field="path")
    resolved = SourceConfig()
    resolved.CopyFrom(config)
    resolved.path = absolute_path(config.path)
    if config.dead_letter:
        resolved.dead_letter = absolute_path(config.dead_letter)
    if not config.files:
        location = open_location(resolved.path, config.storage_options, field="path")
        files = list_files(location, parse_format(config.format) if config.format else None)
        resolved.files.extend(ListedFile(path=file.path, size=file.size, version=file.version) for file in files)
    return resolved


def check_source(config: SourceConfig) -> SourceSettings:
    """The settings of a config, which is resolved first if it is not yet; raises `ConfigError`."""
    if not config.files:
        config = resolve_source(config)
    location = open_location(config.path, config.storage_options, field="path")
    files = [File(file.path, file.size, file.version) for file in config.files]
    kind = resolve_format(files, config.format)
    dialect = _dialect(config, kind)
    return SourceSettings(
        location=location,
        format=kind,
        files=tuple(files),
        schema=_declared_schema(config, kind),
        columns=tuple(config.columns),
        event_time_field=config.event_time_field or None,
        bad_data=_bad_data(config, kind),
        dead_letter=_dead_letter(config),
        batch_rows=_batch_rows(config),
        split_bytes=_split_bytes(config),
        dialect=dialect,
        primary_key=_primary_key(config, kind),
    )


def check_text_types(schema: pa.Schema, kind: Format) -> None:
    """Raises `ConfigError` for a column that the text format cannot hold."""
    check = {Format.JSON: json_lines.check_type, Format.CSV: csv_lines.check_type}.get(kind.named)
    for field in schema if check else ():
        check(field.name, field.type)  # type: ignore[misc]


def select_columns(schema: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    """The wanted columns in the wanted order, all where none is named; raises `ConfigError` for an unknown one."""
    for index, name in enumerate(columns):
        if name not in schema.names:
            raise _unknown_column(name, schema, field=f"columns[{index}]")
    if len(set(columns)) != len(columns):
        raise ConfigError("a column is named twice", field="columns", value=list(columns))
    return pa.schema([schema.field(name) for name in columns]) if columns else schema


def check_event_time(schema: pa.Schema, name: str, kind: Format) -> None:
    """Raises `ConfigError` where the event-time column is missing or is not a timestamp."""
    if name not in schema.names:
        raise _unknown_column(name, schema, field="event_time_field")
    found = schema.field(name).type
    if pa.types.is_timestamp(found):
        return
    fix = (
        "declare it as timestamp (or timestamp_s, timestamp_ms, timestamp_ns for numbers) in schema"
        if kind.is_text
        else "nothing in the file says which time its values mean: read it without event_time_field, "
        "and make a timestamp of it with std.project"
    )
    raise ConfigError(f"column {name!r} is {found}, not a timestamp; {fix}", field="event_time_field", value=name)


def _unknown_column(name: str, schema: pa.Schema, *, field: str) -> ConfigError:
    near = difflib.get_close_matches(name, schema.names, n=1)
    return ConfigError(
        f"no column {name!r}", field=field, value=name, allowed=schema.names, suggestion=near[0] if near else None
    )


def _declared_schema(config: SourceConfig, kind: Format) -> pa.Schema | None:
    if not config.schema:
        return None
    fields: list[pa.Field] = []
    for column in config.schema:
        place = f"schema.{column.name}"
        if any(field.name == column.name for field in fields):
            raise ConfigError(f"column {column.name!r} is declared twice", field=place, value=column.name)
        try:
            fields.append(pa.field(column.name, type_names.parse_type(column.type)))
        except type_names.TypeNameError as error:
            raise ConfigError(
                str(error), field=place, value=column.type, allowed=type_names.ALLOWED, suggestion=error.suggestion
            ) from error
    schema = pa.schema(fields)
    check_text_types(schema, kind)
    return schema


def _primary_key(config: SourceConfig, kind: Format) -> tuple[str, ...]:
    if config.primary_key and kind is not Format.DEBEZIUM_JSON:
        raise ConfigError(
            f"rows of {kind} files are only added, and need no key", field="primary_key", value=list(config.primary_key)
        )
    return tuple(config.primary_key)


def _bad_data(config: SourceConfig, kind: Format) -> BadData:
    try:
        policy = BadData(config.bad_data)
    except ValueError:
        raise ConfigError(
            f"unknown policy {config.bad_data!r}", field="bad_data", value=config.bad_data, allowed=list(BadData)
        ) from None
    if policy is not BadData.FAIL and not kind.is_text:
        raise ConfigError(
            f"only lines of json and csv files can be bad one by one; {kind} files are whole or damaged",
            field="bad_data",
            value=config.bad_data,
            allowed=[BadData.FAIL],
        )
    if policy is BadData.DEAD_LETTER and not config.dead_letter:
        raise ConfigError(
            "bad_data: dead_letter needs a folder for the bad lines, such as dead_letter: ./dead",
            field="bad_data",
            value=config.bad_data,
        )
    if config.dead_letter and policy is not BadData.DEAD_LETTER:
        raise ConfigError("dead_letter needs bad_data: dead_letter", field="dead_letter", value=config.dead_letter)
    return policy


def _dead_letter(config: SourceConfig) -> Location | None:
    if not config.dead_letter:
        return None
    return open_location(config.dead_letter, config.storage_options, field="dead_letter")


def _batch_rows(config: SourceConfig) -> int:
    if not 1 <= config.batch_rows <= MAX_BATCH_ROWS:
        raise ConfigError(
            f"batch_rows must be between 1 and {MAX_BATCH_ROWS}", field="batch_rows", value=config.batch_rows
        )
    return config.batch_rows


def _split_bytes(config: SourceConfig) -> int:
    if config.split_size < 0:
        raise ConfigError("split_size must be positive", field="split_size", value=config.split_size)
    return config.split_size


def _dialect(config: SourceConfig, kind: Format) -> CsvDialect:
    if not config.HasField("csv"):
        return CsvDialect()
    if kind is not Format.CSV:
        raise ConfigError(f"csv settings for {kind} files", field="csv")
    delimiter = config.csv.delimiter
    if len(delimiter.encode()) != 1 or delimiter in '"\r\n':
        raise ConfigError(
            f"{delimiter!r} cannot be a delimiter: it must be one ASCII character, not a quote or a line end",
            field="csv.delimiter",
            value=delimiter,
        )
    if config.csv.no_header and not config.schema:
        raise ConfigError("files without a header need a declared schema", field="schema")
    return CsvDialect(
        delimiter=delimiter,
        names=tuple(column.name for column in config.schema) if config.csv.no_header else None,
        newlines_in_values=config.csv.newlines_in_values,
    )
