"""The config of `mysql.cdc`, checked: everything a person can get wrong is found here, before anything runs."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa
from arroyo_connectors.cdc import FollowSettings, SnapshotMode, check_written, read_follow

from arroyo_core.errors import ConfigError
from arroyo_mysql.cdc import catalogue
from arroyo_mysql.cdc.charsets import UNREADABLE_CHARSET, is_readable
from arroyo_mysql.cdc_pb2 import CatalogueTable, CdcConfig
from arroyo_mysql.connection import Server, read_connection
from arroyo_mysql.names import TableName, read_name
from arroyo_mysql.result_columns import ResultColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class CdcSettings:
    """A checked config."""

    server: Server
    table: CatalogueTable
    name: TableName
    columns: tuple[ResultColumn, ...]
    key: tuple[ResultColumn, ...]
    #: None for one that is made of names.
    server_id: int | None
    follow: FollowSettings


def resolve_cdc(config: CdcConfig) -> CdcConfig:
    """A copy with what the catalogue says of the table; on the driver, once. Raises `ConfigError`, `ExternalError`."""
    server = read_connection(config.connection)
    check_written(config)
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
    check_written(config)
    table = config.catalogue
    name = TableName(table.schema, table.name)
    columns = tuple(catalogue.result_column(each) for each in table.columns)
    key = tuple(catalogue.result_column(each) for each in table.key)
    return CdcSettings(
        server=read_connection(config.connection),
        table=table,
        name=name,
        columns=columns,
        key=key,
        server_id=config.server_id or None,
        follow=read_follow(
            config,
            table=str(name),
            schema=pa.schema([pa.field(column.name, column.type) for column in columns]),
            key=tuple(column.name for column in key),
        ),
    )


def _check_charsets(table: CatalogueTable) -> None:
    for place, column in enumerate(table.columns):
        if column.character_set and not is_readable(column.character_set):
            raise ConfigError(
                f"column {column.name!r} has the character set {column.character_set!r}, {UNREADABLE_CHARSET}",
                field=f"columns[{place}]",
                value=column.name,
            )
