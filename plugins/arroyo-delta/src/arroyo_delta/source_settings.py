"""The config of a source, checked: everything a person can get wrong is found here, before anything runs."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pyarrow as pa
from google.protobuf import json_format

from arroyo_core.api.policy import current_policy
from arroyo_core.errors import ConfigError, DataError
from arroyo_delta.delta_pb2 import Planned, SourceConfig
from arroyo_delta.location import TableLocation, check_reading, make_location
from arroyo_delta.log import check_readable, first_version_since
from arroyo_delta.progress import Start
from arroyo_delta.sink_settings import choice

_PLACES = ("snapshot", "latest")
_STARTS = [*_PLACES, "{version: ...}", "{timestamp: ...}"]


class OnChange(StrEnum):
    """What to do with a version that takes rows away."""

    FAIL = "fail"
    SKIP = "skip"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """A checked config."""

    location: TableLocation
    #: The columns that are read, in order.
    schema: pa.Schema
    partition_by: tuple[str, ...]
    start: Start
    watch_us: int | None
    has_changes: bool
    keys: tuple[str, ...]
    on_change: OnChange
    event_time_field: str | None
    batch_rows: int


def resolve_source(config: SourceConfig) -> SourceConfig:
    """A copy of a config with an absolute path, the columns of the table, and where to begin; raises `ConfigError`."""
    resolved = SourceConfig()
    resolved.CopyFrom(config)
    location = make_location(config.table, config.storage_options)
    resolved.table = location.url
    if not config.planned.table_id:
        resolved.planned.CopyFrom(plan_reading(location, _start(config)))
    return resolved


def plan_reading(location: TableLocation, start: str | Mapping[str, Any]) -> Planned:
    """What planning needs to know of a table; raises `ConfigError`, `RefusedError` where it may not be looked at."""
    check_reading(location)
    table = location.open()
    if table is None:
        raise ConfigError(f"there is no table at {location.place}", field="table", value=location.place)
    try:
        check_readable(table)
    except DataError as error:
        raise ConfigError(error.message, field="table", value=location.place) from error
    schema = pa.schema(table.schema()).remove_metadata()
    metadata = table.metadata()
    planned = Planned(
        version=table.version(),
        table_id=str(metadata.id),
        partition_by=metadata.partition_columns,
        schema=pa.schema([field.remove_metadata() for field in schema]).serialize().to_pybytes(),
    )
    match start:
        case "snapshot":
            planned.first, planned.is_snapshot = table.version(), True
        case "latest":
            planned.first = table.version() + 1
        case {"version": int() as version}:
            planned.first = version
        case {"timestamp": str() as text}:
            planned.first = first_version_since(table, _milliseconds(text), text)
    return planned


def check_source(config: SourceConfig) -> SourceSettings:
    """The settings of a config, which is resolved first if it is not yet; raises `ConfigError`."""
    if not config.planned.table_id:
        current_policy()
        config = resolve_source(config)
    planned = config.planned
    schema = select(pa.ipc.read_schema(pa.py_buffer(planned.schema)), config.columns)
    watch_us = config.watch if config.HasField("watch") else None
    has_changes = config.changes
    if config.keys and not has_changes:
        raise ConfigError("keys are for changes: true", field="keys", value=list(config.keys))
    for index, name in enumerate(config.keys):
        if name not in schema.names:
            raise ConfigError(f"no column {name!r}", field=f"keys[{index}]", value=name, allowed=schema.names)
    on_change = choice(OnChange, config.on_change, "on_change")
    if has_changes and on_change is OnChange.SKIP:
        raise ConfigError("with changes: true no version is skipped", field="on_change", value=config.on_change)
    event_time = config.event_time_field or None
    if event_time is not None:
        _check_event_time(schema, event_time)
    return SourceSettings(
        location=make_location(config.table, config.storage_options),
        schema=schema,
        partition_by=tuple(planned.partition_by),
        start=Start(
            planned.first, planned.is_snapshot, planned.version if watch_us is None else None, planned.table_id
        ),
        watch_us=watch_us,
        has_changes=has_changes,
        keys=tuple(config.keys) or tuple(schema.names),
        on_change=on_change,
        event_time_field=event_time,
        batch_rows=config.batch_rows,
    )


def select(schema: pa.Schema, columns: Any) -> pa.Schema:
    """The columns that are named, in that order; all where none is. Raises `ConfigError`."""
    for index, name in enumerate(columns):
        if name not in schema.names:
            raise ConfigError(f"no column {name!r}", field=f"columns[{index}]", value=name, allowed=schema.names)
    names = list(dict.fromkeys(columns)) or schema.names
    # What a version has not is null, whatever the table asks of writers.
    return pa.schema([schema.field(name).with_nullable(True) for name in names])


def _start(config: SourceConfig) -> str | Mapping[str, Any]:
    if not config.HasField("start"):
        return "snapshot"
    value = json_format.MessageToDict(config.start)
    match value:
        case "snapshot" | "latest":
            return str(value)
        case {"version": float() | int() as number} if len(value) == 1 and number >= 0 and number == int(number):
            return {"version": int(number)}
        case {"timestamp": str() as text} if len(value) == 1:
            _milliseconds(text)
            return {"timestamp": text}
    raise ConfigError("start is one of these", field="start", value=value, allowed=_STARTS)


def _milliseconds(text: str) -> int:
    try:
        time = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError("a timestamp is written as 2026-01-31T12:00:00Z", field="start", value=text) from None
    return int((time if time.tzinfo else time.replace(tzinfo=datetime.UTC)).timestamp() * 1000)


def _check_event_time(schema: pa.Schema, name: str) -> None:
    if name not in schema.names:
        raise ConfigError(f"no column {name!r}", field="event_time_field", value=name, allowed=schema.names)
    found = schema.field(name).type
    if not pa.types.is_timestamp(found):
        raise ConfigError(f"column {name!r} is {found}, not a timestamp", field="event_time_field", value=name)
