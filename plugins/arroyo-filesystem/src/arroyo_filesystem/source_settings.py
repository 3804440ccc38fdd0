"""The config of a source, checked: everything a person can get wrong is found here, before anything runs."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from arroyo_formats import BadData, is_chosen, read_policy, read_schema

from arroyo_core.api.policy import current_policy
from arroyo_core.errors import ConfigError
from arroyo_filesystem.filesystem_pb2 import ListedFile, SourceConfig
from arroyo_filesystem.format_choice import Beside, ChosenFormat, choose_format
from arroyo_filesystem.listing import File, list_files, tell_format
from arroyo_filesystem.location import Location, absolute_path, open_location

MAX_BATCH_ROWS = 2**24


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """A checked config. `schema` is None where it is to be read from the first file."""

    location: Location
    format: ChosenFormat
    files: tuple[File, ...]
    schema: pa.Schema | None
    columns: tuple[str, ...]
    event_time_field: str | None
    bad_data: BadData
    dead_letter: Location | None
    batch_rows: int
    #: 0 where it is to be chosen from the size of the input.
    split_bytes: int
    #: How often to look for new files; None where it has only those of its first start.
    watch_us: int | None


def resolve_source(config: SourceConfig) -> SourceConfig:
    """A copy of a config with absolute paths, the listing of files and the resolved format; raises `ConfigError`."""
    if not config.path:
        raise ConfigError("path is needed", field="path")
    resolved = SourceConfig()
    resolved.CopyFrom(config)
    resolved.path = absolute_path(config.path)
    if config.dead_letter:
        resolved.dead_letter = absolute_path(config.dead_letter)
    if config.files:
        return resolved
    if current_policy().is_untrusted and is_chosen(config.format) and config.schema:
        # All that planning needs is written: nobody looks at the files.
        return _with_format(resolved)
    location = open_location(resolved.path, config.storage_options, field="path")
    files = list_files(location, _format(config).name if is_chosen(config.format) else None)
    resolved.files.extend(ListedFile(path=file.path, size=file.size, version=file.version) for file in files)
    if not is_chosen(config.format):
        resolved.format.string_value = tell_format(files)
    return _with_format(resolved)


def _with_format(resolved: SourceConfig) -> SourceConfig:
    chosen = _format(resolved)
    made = chosen.resolve()
    if made.settings != chosen.settings:
        resolved.format.CopyFrom(made.choice.to_value())
        for name in (*_BESIDE, "csv"):
            resolved.ClearField(name)
    return resolved


def check_source(config: SourceConfig) -> SourceSettings:
    """The settings of a config, which is resolved first if it is not yet; raises `ConfigError`."""
    if not config.files and not current_policy().is_untrusted:
        config = resolve_source(config)
    location = open_location(config.path, config.storage_options, field="path")
    files = [File(file.path, file.size, file.version) for file in config.files]
    chosen = _format(config)
    schema = read_schema(config.schema)
    check_columns(chosen, schema)
    return SourceSettings(
        location=location,
        format=chosen,
        files=tuple(files),
        schema=schema,
        columns=tuple(config.columns),
        event_time_field=config.event_time_field or None,
        bad_data=read_policy(config.bad_data, config.dead_letter),
        dead_letter=_dead_letter(config),
        batch_rows=_batch_rows(config),
        split_bytes=_split_bytes(config),
        watch_us=_watch_us(config, location),
    )


def check_columns(chosen: ChosenFormat, schema: pa.Schema | None) -> None:
    """Raises `ConfigError` for a column that files of the format cannot be read as."""
    chosen.placed(lambda: chosen.choice.check_files(schema))


def select_columns(schema: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    """The wanted columns in the wanted order, all where none is named; raises `ConfigError` for an unknown one."""
    for index, name in enumerate(columns):
        if name not in schema.names:
            raise _unknown_column(name, schema, field=f"columns[{index}]")
    if len(set(columns)) != len(columns):
        raise ConfigError("a column is named twice", field="columns", value=list(columns))
    return pa.schema([schema.field(name) for name in columns]) if columns else schema


def check_event_time(schema: pa.Schema, name: str, chosen: ChosenFormat) -> None:
    """Raises `ConfigError` where the event-time column is missing or is not a timestamp."""
    if name not in schema.names:
        raise _unknown_column(name, schema, field="event_time_field")
    found = schema.field(name).type
    if pa.types.is_timestamp(found):
        return
    fix = (
        "declare it as timestamp (or timestamp_s, timestamp_ms, timestamp_ns for numbers) in schema"
        if chosen.files.has_lines
        else "nothing in the file says which time its values mean: read it without event_time_field, "
        "and make a timestamp of it with std.project"
    )
    raise ConfigError(f"column {name!r} is {found}, not a timestamp; {fix}", field="event_time_field", value=name)


def _unknown_column(name: str, schema: pa.Schema, *, field: str) -> ConfigError:
    near = difflib.get_close_matches(name, schema.names, n=1)
    return ConfigError(
        f"no column {name!r}", field=field, value=name, allowed=schema.names, suggestion=near[0] if near else None
    )


#: Settings of some formats that may also be fields of the config, and what is said where the format has none such.
_BESIDE = {
    "primary_key": "rows of {format} files are only added, and need no key",
}


def _format(config: SourceConfig) -> ChosenFormat:
    beside = {
        name: Beside(name, getattr(config, name), refusal) for name, refusal in _BESIDE.items() if getattr(config, name)
    }
    for setting, value in config.csv.ListFields():
        beside[setting.name] = Beside(f"csv.{setting.name}", value, "csv settings for {format} files")
    return choose_format(config.format, beside=beside)


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


def _watch_us(config: SourceConfig, location: Location) -> int | None:
    if not config.HasField("watch"):
        return None
    if config.watch < 1:
        raise ConfigError("the duration must be more than zero", field="watch", value=config.watch)
    if len(config.files) == 1 and config.files[0].path == location.path:
        raise ConfigError("no other file can appear: give a folder or a glob as path", field="watch")
    return config.watch
