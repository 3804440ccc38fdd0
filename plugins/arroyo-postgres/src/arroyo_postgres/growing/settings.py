"""The config of a source, checked; and what the database says of its columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from arroyo_connectors import GrowingSettings, check_distinct, check_growing_time, choose_columns, read_growing

from arroyo_core.api.units import format_duration_us
from arroyo_core.errors import ConfigError
from arroyo_postgres.connection import Server, read_connection
from arroyo_postgres.reading import FoundColumn, describe, read_relation
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
    relation = read_relation(config.table, config.query)
    check_distinct(config.columns)
    server = read_connection(config.connection)
    return SourceSettings(
        server=server,
        relation=relation,
        columns=tuple(config.columns),
        delay_us=config.delay,
        growing=read_growing(
            config, name=f"{f'table {config.table}' if config.table else 'a query'} of {server.display()}"
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
    growing = settings.growing
    wanted = choose_columns(growing, settings.columns, list(known))
    found = SourceColumns(tuple(known[name] for name in wanted), known[growing.column])
    if settings.delay_us and found.growing.sql not in _TIMES:
        raise ConfigError(
            f"column {growing.column!r} is {found.growing.sql}, not a time: it cannot be "
            f"{format_duration_us(settings.delay_us)} behind the clock",
            field="delay",
        )
    check_growing_time(growing, found.schema)
    return found
