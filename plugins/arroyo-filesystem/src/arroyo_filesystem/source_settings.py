"""The config of a source, checked: everything a person can get wrong is found here, before anything runs."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from arroyo_formats import BadData, is_chosen, read_policy, read_schema
from arroyo_formats.conditions import Condition, parse_condition
from arroyo_formats.text.compressed import compression_of
from arroyo_formats.text.files import LineFiles

from arroyo_core.api.policy import current_policy
from arroyo_core.errors import ConfigError
from arroyo_filesystem.filesystem_pb2 import ListedFile, SourceConfig
from arroyo_filesystem.format_choice import Beside, ChosenFormat, choose_format
from arroyo_filesystem.listing import File, fixed_folder, list_files, tell_format
from arroyo_filesystem.location import Location, absolute_path, open_location
from arroyo_filesystem.object_stores import is_object_store
from arroyo_filesystem.splits import MAX_UNREAD
from arroyo_filesystem.watch_settings import WatchSettings, check_watch

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
    #: How new files are looked for; None where it has only those of its first start.
    watch: WatchSettings | None
    #: Rows for which it is not true may be left out; None where all are read.
    predicate: Condition | None = None
    predicate_text: str = ""


def resolve_source(config: SourceConfig) -> SourceConfig:
    """A copy of a config with absolute paths, the listing of files and the resolved format; raises `ConfigError`."""
    if not config.path:
        raise ConfigError("path is needed", field="path")
    resolved = SourceConfig()
    resolved.CopyFrom(config)
    resolved.path = absolute_path(config.path)
    if config.dead_letter:
        resolved.dead_letter = absolute_path(config.dead_letter)
    if config.archive_path:
        resolved.archive_path = absolute_path(config.archive_path)
    if config.files or config.is_listed:
        return resolved
    if current_policy().is_untrusted and is_chosen(config.format) and config.schema:
        # All that planning needs is written: nobody looks at the files.
        return _with_format(resolved)
    location = open_location(resolved.path, config.storage_options, field="path")
    files = _list(config, location)
    resolved.is_listed = True
    if not is_chosen(config.format):
        resolved.format.string_value = tell_format(files)
    if config.HasField("watch"):
        _take_first(resolved, files, location)
    else:
        resolved.files.extend(ListedFile(path=file.path, size=file.size, version=file.version) for file in files)
    return _with_format(resolved)


def _list(config: SourceConfig, location: Location) -> list[File]:
    wanted = _format(config).name if is_chosen(config.format) else None
    # A folder that is watched may be empty at first, where all that its files would tell is written.
    is_told = config.HasField("watch") and wanted is not None and bool(config.schema)
    return list_files(location, wanted, may_be_empty=is_told and _has_folder(location))


def _has_folder(location: Location) -> bool:
    if not location.is_local and is_object_store(location.fs):
        return True
    return bool(location.fs.exists(fixed_folder(location.path)))


def _take_first(resolved: SourceConfig, files: Sequence[File], location: Location) -> None:
    """The files that all subtasks begin with; a watch finds the others, which may be very many."""
    watch = check_watch(resolved, location)
    if watch is None:
        raise AssertionError("the config has a watch")
    watch.check_times(files)
    if len(files) == 1 and files[0].path == location.path:
        raise ConfigError("no other file can appear: give a folder or a glob as path", field="watch")
    # One tells the schema, where none is read.
    most = 1 if watch.is_start_new else MAX_UNREAD
    resolved.files.extend(
        ListedFile(
            path=file.path, size=file.size, version=file.version, modified=file.modified_us, identity=file.identity
        )
        for file in sorted(files, key=watch.key)[:most]
    )


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
    if not config.files and not config.is_listed and not current_policy().is_untrusted:
        config = resolve_source(config)
    location = open_location(config.path, config.storage_options, field="path")
    files = [File(file.path, file.size, file.version, file.modified, file.identity) for file in config.files]
    chosen = _format(config)
    schema = read_schema(config.schema)
    check_columns(chosen, schema)
    if config.grow:
        _check_grows(chosen, files)
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
        watch=check_watch(config, location),
        predicate=_predicate(config),
        predicate_text=config.predicate,
    )


def _predicate(config: SourceConfig) -> Condition | None:
    if not config.predicate:
        return None
    if config.after_commit:
        raise ConfigError(
            "files that nobody has read would be moved or deleted: leave out after_commit, or write the predicate in a "
            "std.filter",
            field="predicate",
            value=config.predicate,
        )
    return parse_condition(config.predicate, field="predicate")


def _check_grows(chosen: ChosenFormat, files: Sequence[File]) -> None:
    """Raise `ConfigError` where what is appended to a file cannot be told from what was there."""
    if not isinstance(chosen.files, LineFiles):
        raise ConfigError(f"{chosen.name} files do not grow: their rows are no lines", field="grow", value=True)
    if chosen.files.is_quoted(chosen.settings):
        raise ConfigError("the end of a line says nothing where values may have line ends", field="grow", value=True)
    packed = next((file.path for file in files if compression_of(file.path)), None)
    if packed is not None:
        raise ConfigError(f"{packed!r} is compressed, and cannot grow", field="grow", value=True)


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
