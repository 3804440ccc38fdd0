"""The config of `postgres.cdc`, checked: everything a person can get wrong is found here, before anything runs."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa
from arroyo_connectors.cdc import FollowSettings, SnapshotMode, check_written, read_follow

from arroyo_core.errors import ConfigError
from arroyo_postgres.cdc import catalogue
from arroyo_postgres.cdc.columns import TableColumn, arrow_type
from arroyo_postgres.cdc_pb2 import CatalogueTable, CdcConfig
from arroyo_postgres.connection import Server, read_connection

_SLOT_NAME = re.compile(r"[a-z0-9_]{1,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CdcSettings:
    """A checked config."""

    server: Server
    table: CatalogueTable
    columns: tuple[TableColumn, ...]
    publication: str
    #: Empty with `SnapshotMode.ONLY`.
    slot: str
    creates: bool
    follow: FollowSettings


def resolve_cdc(config: CdcConfig) -> CdcConfig:
    """A copy with what the catalogue says of the table; on the driver, once. Raises `ConfigError`, `ExternalError`."""
    server = read_connection(config.connection)
    _check_written(config)
    resolved = CdcConfig()
    resolved.CopyFrom(config)
    with server.connect(name="arroyo plan") as connection, server.translating(f"cannot look at table {config.table!r}"):
        table = catalogue.read_table(connection, config.table, config.columns, config.as_text)
        if config.changes != "inserts" and config.snapshot != SnapshotMode.ONLY:
            catalogue.check_identity(table)
        resolved.catalogue.CopyFrom(table)
    return resolved


def check_cdc(config: CdcConfig) -> CdcSettings:
    """The settings of a resolved config; raises `ConfigError`."""
    _check_written(config)
    table = config.catalogue
    columns = tuple(
        TableColumn(
            each.name,
            each.type_oid,
            each.type_modifier,
            arrow_type(each.base_oid, each.base_modifier, as_text=each.as_text),
        )
        for each in table.columns
    )
    return CdcSettings(
        server=read_connection(config.connection),
        table=table,
        columns=columns,
        publication=config.publication or config.slot,
        slot=config.slot,
        creates=config.create,
        follow=read_follow(
            config,
            # For people: without quotes.
            table=f"{table.schema}.{table.name}",
            schema=pa.schema([column.field for column in columns]),
            key=tuple(column.name for column in table.key),
        ),
    )


def _check_written(config: CdcConfig) -> None:
    """What can be said without the database."""
    is_only = config.snapshot == SnapshotMode.ONLY
    if is_only and (config.slot or config.publication):
        raise ConfigError(
            "snapshot: only reads no changes, and needs neither slot nor publication",
            field="slot" if config.slot else "publication",
        )
    if not is_only and not config.slot:
        raise ConfigError("slot is needed: the name of the replication slot of this source", field="slot")
    if config.slot and not _SLOT_NAME.fullmatch(config.slot):
        raise ConfigError(
            f"a slot cannot be called {config.slot!r}: lower case letters, digits and _, up to 63",
            field="slot",
            value=config.slot,
        )
    check_written(config)
