"""The config of a source, checked; and what the database says of its columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from arroyo_connectors import GrowingSettings

from arroyo_core.api.units import format_duration_us
from arroyo_core.errors import ConfigError
from arroyo_postgres.connection import Server, read_connection
from arroyo_postgres.reading import FoundColumn, check_column, check_distinct, describe, read_relation
from arroyo_postgres.source_pb2 import SourceConfig

if TYPE_CHECKING:
    import psycopg

#: Types of which `now()` less a time is a value.
_TIMES = ("date", "timestamp without time zone", "timestamp with time zone")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """A checked config. `relation` is what stands after FROM."""

    server: Server
    relation: str
    columns: tuple[str, ...]
    delay_us: int
    growing: GrowingSettings


@dataclass(frozen=True, slots=True)
class SourceColumns:
    """What is read, and the column that grows, which need not be among it."""

    read: tuple[FoundColumn, ...]
    growing: FoundColumn

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([each.column.field for each in self.read])


def check_source(config: SourceConfig) -> SourceSettings:
    """The settings of a config; raises `ConfigError`. Reaches no server."""
    # The planner checks this for YAML; configs that are made in code come here unchecked.
    if not config.growing_column:
        raise ConfigError("growing_column is needed", field="growing_column")
    if config.until not in ("", "latest"):
        raise ConfigError(f"unknown end {config.until!r}", field="until", value=config.until, allowed=["latest"])
    for field in ("poll_interval", "batch_rows"):
        if getattr(config, field) <= 0:
            raise ConfigError(f"{field} must be more than zero", field=field, value=getattr(config, field))
    relation = read_relation(config.table, config.query)
    check_distinct(config.columns)
    server = read_connection(config.connection)
    return SourceSettings(
        server=server,
        relation=relation,
        columns=tuple(config.columns),
        delay_us=config.delay,
        growing=GrowingSettings(
            name=f"{f'table {config.table}' if config.table else 'a query'} of {server.display()}",
            column=config.growing_column,
            after=config.after,
            poll_s=config.poll_interval / 1e6,
            has_end=bool(config.until),
            batch_rows=config.batch_rows,
            event_time=config.event_time_field,
        ),
    )


def find_columns(settings: SourceSettings) -> SourceColumns:
    """Ask the database while the pipeline is planned; raises `ConfigError`, and `ExternalError` in an outage."""
    with (
        settings.server.connect(name="arroyo plan") as connection,
        settings.server.translating(f"cannot look at {settings.growing.name}"),
    ):
        return read_columns(settings, connection)


def read_columns(settings: SourceSettings, connection: psycopg.Connection[Any]) -> SourceColumns:
    """What there is now; raises `ConfigError`, and what psycopg raises."""
    known = {each.column.name: each for each in describe(connection, settings.relation, ())}
    for place, name in enumerate(settings.columns):
        check_column(name, list(known), f"columns[{place}]")
    check_column(settings.growing.column, list(known), "growing_column")
    found = SourceColumns(tuple(known[name] for name in settings.columns or known), known[settings.growing.column])
    if settings.delay_us and found.growing.sql not in _TIMES:
        raise ConfigError(
            f"column {settings.growing.column!r} is {found.growing.sql}, not a time: it cannot be "
            f"{format_duration_us(settings.delay_us)} behind the clock",
            field="delay",
        )
    if settings.growing.event_time:
        check_column(settings.growing.event_time, found.schema.names, "event_time_field")
        kind = found.schema.field(settings.growing.event_time).type
        if not pa.types.is_timestamp(kind):
            raise ConfigError(
                f"column {settings.growing.event_time!r} is {kind}, not a timestamp", field="event_time_field"
            )
    return found
