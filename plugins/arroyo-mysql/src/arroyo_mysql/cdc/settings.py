"""The config of `mysql.cdc`, checked: everything a person can get wrong is found here, before anything runs."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from arroyo_core.api.updating import UPDATING_META
from arroyo_core.errors import ConfigError
from arroyo_mysql.cdc import catalogue
from arroyo_mysql.cdc.charsets import UNREADABLE_CHARSET, is_readable
from arroyo_mysql.cdc_pb2 import CatalogueTable, CdcConfig
from arroyo_mysql.connection import Server, read_connection
from arroyo_mysql.names import TableName, read_name
from arroyo_mysql.result_columns import ResultColumn, check_column


class SnapshotMode(StrEnum):
    """Which of the rows are read that were there before the job."""

    INITIAL = "initial"
    NEVER = "never"
    ONLY = "only"


@dataclass(frozen=True, slots=True, kw_only=True)
class CdcSettings:
    """A checked config."""

    server: Server
    table: CatalogueTable
    name: TableName
    columns: tuple[ResultColumn, ...]
    key: tuple[ResultColumn, ...]
    snapshot: SnapshotMode
    inserts_only: bool
    chunk_rows: int
    #: None for one that is made of names.
    server_id: int | None
    ignores_truncate: bool
    ends: bool
    event_time_field: str | None
    max_lateness_us: int | None
    idle_after_us: int | None
    warn_lag_bytes: int
    batch_rows: int
    #: None for never.
    give_up_after_s: float | None

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(column.name, column.type) for column in self.columns])


def resolve_cdc(config: CdcConfig) -> CdcConfig:
    """A copy with what the catalogue says of the table; on the driver, once. Raises `ConfigError`, `ExternalError`."""
    server = read_connection(config.connection)
    _check_written(config)
    name = read_name(config.table, server.database, "table")
    resolved = CdcConfig()
    resolved.CopyFrom(config)
    with server.translating(f"cannot look at table {name}"), closing(server.connect()) as session:
        resolved.catalogue.CopyFrom(catalogue.read_table(session, name, config.columns))
        if config.snapshot != SnapshotMode.ONLY:
            catalogue.check_binlog(session, resolved.catalogue.schema)
            catalogue.current_place(session)  # whether the user may ask
            _check_charsets(resolved.catalogue)
    return resolved


def check_cdc(config: CdcConfig) -> CdcSettings:
    """The settings of a resolved config; raises `ConfigError`."""
    _check_written(config)
    table = config.catalogue
    columns = tuple(catalogue.result_column(each) for each in table.columns)
    names = [column.name for column in columns]
    if UPDATING_META in names:
        raise ConfigError(f"the table has a column {UPDATING_META!r}: choose others with columns", field="columns")
    if config.event_time_field:
        check_column(config.event_time_field, names, "event_time_field")
        kind = columns[names.index(config.event_time_field)].type
        if not pa.types.is_timestamp(kind):
            raise ConfigError(
                f"column {config.event_time_field!r} is {kind}, not a timestamp",
                field="event_time_field",
                value=config.event_time_field,
            )
    return CdcSettings(
        server=read_connection(config.connection),
        table=table,
        name=TableName(table.schema, table.name),
        columns=columns,
        key=tuple(catalogue.result_column(each) for each in table.key),
        snapshot=SnapshotMode(config.snapshot),
        inserts_only=config.changes == "inserts" or config.snapshot == SnapshotMode.ONLY,
        chunk_rows=config.chunk_rows,
        server_id=config.server_id or None,
        ignores_truncate=config.on_truncate == "ignore",
        ends=bool(config.until) or config.snapshot == SnapshotMode.ONLY,
        event_time_field=config.event_time_field or None,
        max_lateness_us=config.max_lateness if config.HasField("max_lateness") else None,
        idle_after_us=config.idle_after if config.HasField("idle_after") else None,
        warn_lag_bytes=config.warn_lag,
        batch_rows=config.batch_rows,
        give_up_after_s=config.give_up_after / 1e6 or None,
    )


def _check_charsets(table: CatalogueTable) -> None:
    for place, column in enumerate(table.columns):
        if column.character_set and not is_readable(column.character_set):
            raise ConfigError(
                f"column {column.name!r} has the character set {column.character_set!r}, {UNREADABLE_CHARSET}",
                field=f"columns[{place}]",
                value=column.name,
            )


def _check_written(config: CdcConfig) -> None:
    """What can be said without the database."""
    if config.HasField("max_lateness") and not config.event_time_field:
        raise ConfigError("max_lateness needs an event time: give event_time_field", field="max_lateness")
