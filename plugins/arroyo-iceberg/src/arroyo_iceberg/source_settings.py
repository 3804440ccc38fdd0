"""The config of a source, checked; and what the planner finds out for it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING

import pyarrow as pa

from arroyo_core.api.hashing import is_hashable
from arroyo_core.api.policy import current_policy
from arroyo_core.errors import ConfigError
from arroyo_iceberg.catalog import CatalogSettings, TableName, check_catalog, read_table_name, resolve_catalog
from arroyo_iceberg.history import Begin, find_begin, head_of
from arroyo_iceberg.iceberg_pb2 import Planned, SourceConfig
from arroyo_iceberg.schemas import check_names, select_columns

if TYPE_CHECKING:
    from google.protobuf.struct_pb2 import Value
    from pyiceberg.table import Table

SNAPSHOT, LATEST, TIMESTAMP = "snapshot", "latest", "timestamp"


class Change(StrEnum):
    """What to do with a snapshot that takes rows away or changes them."""

    FAIL = "fail"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class StartSetting:
    """Where to begin, as it is written."""

    place: str = SNAPSHOT
    snapshot: int | None = None
    time_us: int | None = None

    def __str__(self) -> str:
        if self.snapshot is not None:
            return f"snapshot {self.snapshot}"
        return f"timestamp {self.time_us}" if self.time_us is not None else self.place


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """A checked config."""

    catalog: CatalogSettings
    table: TableName
    start: StartSetting
    watch_us: int | None
    branch: str
    on_change: Change
    has_changes: bool
    #: Of changes: what the ids of rows are made of; none for all columns.
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    event_time_field: str | None
    batch_rows: int
    give_up_us: int
    #: None before the planner has asked the catalog.
    planned: PlannedTable | None


@dataclass(frozen=True, slots=True)
class PlannedTable:
    """What the planner has found."""

    schema: pa.Schema
    begin: Begin
    until: int | None
    table_id: str


def resolve_source(config: SourceConfig) -> SourceConfig:
    """A copy of a config with absolute paths, the columns and the snapshots; raises `ConfigError`."""
    settings = check_source(config)
    resolved = SourceConfig()
    resolved.CopyFrom(config)
    resolved.catalog.CopyFrom(resolve_catalog(config.catalog))
    planned = plan_table(settings)
    resolved.planned.CopyFrom(
        Planned(
            schema=planned.schema.serialize().to_pybytes(),
            start=planned.begin.snapshot,
            is_full=planned.begin.is_full,
            until=planned.until,
            table_id=planned.table_id,
            sequence=planned.begin.sequence,
        )
    )
    return resolved


def check_source(config: SourceConfig) -> SourceSettings:
    """The settings of a config, resolved or not; raises `ConfigError`. Reaches nothing."""
    if config.batch_rows <= 0:
        raise ConfigError("batch_rows must be positive", field="batch_rows", value=config.batch_rows)
    try:
        on_change = Change(config.on_change.lower())
    except ValueError:
        raise ConfigError(
            f"unknown choice {config.on_change!r}", field="on_change", value=config.on_change, allowed=list(Change)
        ) from None
    if config.keys and not config.changes:
        raise ConfigError("keys are for changes: true", field="keys", value=list(config.keys))
    if config.changes and on_change is Change.SKIP:
        raise ConfigError("with changes: true no snapshot is skipped", field="on_change", value=config.on_change)
    return SourceSettings(
        catalog=check_catalog(config.catalog),
        table=read_table_name(config.table),
        start=_read_start(config.start),
        watch_us=config.watch if config.HasField("watch") else None,
        branch=config.branch or "main",
        on_change=on_change,
        has_changes=config.changes,
        keys=tuple(config.keys),
        columns=tuple(config.columns),
        event_time_field=config.event_time_field or None,
        batch_rows=config.batch_rows,
        give_up_us=config.give_up_after,
        planned=_read_planned(config.planned) if config.HasField("planned") else None,
    )


def plan_table(settings: SourceSettings) -> PlannedTable:
    """Ask the catalog for the columns, and where to begin and to end; raises `ConfigError`."""
    current_policy().check_network(f"to ask the catalog {settings.catalog.shown}", field="catalog")
    table = settings.catalog.load(settings.table, doing="read")
    schema = _columns(settings, table)
    begin = find_begin(table.metadata, settings.branch, settings.start.snapshot, settings.start.time_us)
    if settings.start.place == LATEST:
        begin = Begin(begin.snapshot, is_full=False, sequence=begin.sequence)
    head = head_of(table.metadata, settings.branch)
    return PlannedTable(schema, begin, head.snapshot_id if head is not None else None, str(table.metadata.table_uuid))


def _columns(settings: SourceSettings, table: Table) -> pa.Schema:
    schema = select_columns(table.schema(), settings.columns)
    if settings.has_changes:
        _check_keys(settings, schema)
    name = settings.event_time_field
    if name is not None:
        check_names([name], schema, field="event_time_field") if name in schema.names else _refuse(name, schema)
        kind = schema.field(name).type
        if not pa.types.is_timestamp(kind):
            raise ConfigError(f"column {name!r} is {kind}, not a timestamp", field="event_time_field", value=name)
    return schema


def _check_keys(settings: SourceSettings, schema: pa.Schema) -> None:
    check_names(settings.keys, schema, field="keys")
    for name in settings.keys or schema.names:
        kind = schema.field(name).type
        if not is_hashable(kind):
            raise ConfigError(
                f"column {name!r} is {kind}, which no id of a row can be made of: name the columns that identify a row "
                "as keys, or leave it out by columns",
                field="keys",
                value=name,
            )


def _refuse(name: str, schema: pa.Schema) -> None:
    raise ConfigError(f"no column {name!r}", field="event_time_field", value=name, allowed=schema.names)


def _read_planned(planned: Planned) -> PlannedTable:
    return PlannedTable(
        pa.ipc.read_schema(pa.py_buffer(planned.schema)),
        Begin(planned.start if planned.HasField("start") else None, planned.is_full, planned.sequence),
        planned.until if planned.HasField("until") else None,
        planned.table_id,
    )


def _read_start(value: Value) -> StartSetting:
    kind = value.WhichOneof("kind")
    if kind is None or (kind == "string_value" and not value.string_value):
        return StartSetting()
    if kind == "string_value":
        if value.string_value.lower() not in (SNAPSHOT, LATEST):
            raise ConfigError(
                f"unknown start {value.string_value!r}; {_FORMS}", field="start", value=value.string_value
            )
        return StartSetting(value.string_value.lower())
    if kind != "struct_value" or len(value.struct_value.fields) != 1:
        raise ConfigError(f"start is {_FORMS}", field="start")
    ((name, inner),) = value.struct_value.fields.items()
    if name == SNAPSHOT:
        return StartSetting(snapshot=_snapshot_number(inner))
    if name == TIMESTAMP:
        return StartSetting(time_us=_time_us(inner))
    raise ConfigError(f"start is {_FORMS}", field=f"start.{name}", value=name, allowed=[SNAPSHOT, TIMESTAMP])


_FORMS = "snapshot, latest, {snapshot: ID} or {timestamp: 2026-01-31T12:00:00Z}"
#: A number of YAML comes as a double, which holds no larger integers.
_EXACT = 2**53


def _snapshot_number(value: Value) -> int:
    if value.WhichOneof("kind") != "number_value":
        return read_snapshot_id(value.string_value, field="start.snapshot")
    if not (value.number_value.is_integer() and 0 <= value.number_value <= _EXACT):
        raise ConfigError(
            'a number of this size is not exact here: write the id in quotes, {snapshot: "3051729675574597004"}',
            field="start.snapshot",
        )
    return int(value.number_value)


def read_snapshot_id(text: str, *, field: str) -> int:
    """The id of a snapshot as it is written; raises `ConfigError`."""
    if not (text.isascii() and text.isdecimal()) or int(text) >= 2**63:
        raise ConfigError("the id of a snapshot is a number", field=field, value=text)
    return int(text)


def _time_us(value: Value) -> int:
    text = value.string_value
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(
            f"{text!r} is not a time: write it as 2026-01-31T12:00:00Z", field="start.timestamp", value=text
        ) from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1_000_000)
