"""The config of a source, checked; and what the database says of its columns."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa
from arroyo_connectors import GrowingSettings, check_distinct, check_growing_time, choose_columns, read_growing

from arroyo_core.api.units import format_duration_us
from arroyo_core.errors import ConfigError
from arroyo_mysql.connection import Server, Session, read_connection
from arroyo_mysql.names import TableName, read_name, read_relation, text_literal
from arroyo_mysql.result_columns import ResultColumn, describe
from arroyo_mysql.source_pb2 import SourceConfig

_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """A checked config. `relation` is what stands after FROM."""

    server: Server
    relation: str
    #: None for a query.
    table: TableName | None
    columns: tuple[str, ...]
    delay_us: int
    growing: GrowingSettings


@dataclass(frozen=True, slots=True)
class SourceColumns:
    """What is read, and the column that grows, which need not be among it."""

    read: tuple[ResultColumn, ...]
    growing: ResultColumn

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(each.name, each.type) for each in self.read])


def check_source(config: SourceConfig) -> SourceSettings:
    """The settings of a config; raises `ConfigError`. Reaches no server."""
    server = read_connection(config.connection)
    name, relation = read_relation(config.table, config.query, server.database)
    check_distinct(config.columns)
    return SourceSettings(
        server=server,
        relation=relation,
        table=read_name(config.table, server.database, "table") if config.table else None,
        columns=tuple(config.columns),
        delay_us=config.delay,
        growing=read_growing(config, name=f"{name} of {server.display()}"),
    )


def find_columns(settings: SourceSettings) -> SourceColumns:
    """Ask the database while the pipeline is planned; raises `ConfigError`, and `ExternalError` in an outage."""
    with (
        settings.server.translating(f"cannot look at {settings.growing.name}"),
        closing(settings.server.connect(raw=True)) as session,
    ):
        return read_columns(settings, session)


def read_columns(settings: SourceSettings, session: Session) -> SourceColumns:
    """What there is now; raises `ConfigError`, and errors of the client."""
    growing = settings.growing
    known = {each.name: each for each in describe(session, settings.relation, ())}
    wanted = choose_columns(growing, settings.columns, list(known))
    found = SourceColumns(tuple(known[name] for name in wanted), known[growing.column])
    _check_growing(found.growing, settings)
    if growing.after:
        value_literal(growing.after, found.growing.type)
    check_growing_time(growing, found.schema)
    return found


def value_literal(value: str, kind: pa.DataType) -> str:
    """A value of the column that grows, as it is compared with it; raises `ConfigError` for one that is not one."""
    if not (pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
        return text_literal(value)
    # A number as a text would be compared as a float.
    if not _NUMBER.fullmatch(value):
        raise ConfigError(f"{value!r} is not a number", field="after", value=value)
    return value


def _check_growing(column: ResultColumn, settings: SourceSettings) -> None:
    kind = column.type
    is_time = pa.types.is_timestamp(kind) or pa.types.is_date(kind)
    if settings.delay_us and not is_time:
        raise ConfigError(
            f"column {column.name!r} is {kind}, not a time: it cannot be "
            f"{format_duration_us(settings.delay_us)} behind the clock",
            field="delay",
        )
    if column.is_choice:
        raise ConfigError(
            f"column {column.name!r} is an enum or a set, and cannot be what grows: the database sorts it by the "
            "places of its values, and compares it by their letters",
            field="growing_column",
            value=column.name,
        )
    is_number = (pa.types.is_integer(kind) and column.read is None) or pa.types.is_decimal(kind)
    if not (is_time or is_number or pa.types.is_string(kind)):
        raise ConfigError(
            f"column {column.name!r} is {kind}, and cannot be what grows: integers, decimals, dates, times with a "
            "date, and texts can",
            field="growing_column",
            value=column.name,
        )
