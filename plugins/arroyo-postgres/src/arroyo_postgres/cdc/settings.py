"""The config of `postgres.cdc`, checked: everything a person can get wrong is found here, before anything runs."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from arroyo_core.api.updating import UPDATING_META
from arroyo_core.errors import ConfigError
from arroyo_postgres.cdc import catalogue
from arroyo_postgres.cdc.columns import TableColumn, arrow_type
from arroyo_postgres.cdc_pb2 import CatalogueTable, CdcConfig
from arroyo_postgres.connection import Server, read_connection

_SLOT_NAME = re.compile(r"[a-z0-9_]{1,63}")


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
    columns: tuple[TableColumn, ...]
    publication: str
    #: Empty with `SnapshotMode.ONLY`.
    slot: str
    creates: bool
    snapshot: SnapshotMode
    inserts_only: bool
    chunk_rows: int
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
        return pa.schema([column.field for column in self.columns])

    @property
    def table_name(self) -> str:
        """For people: without quotes."""
        return f"{self.table.schema}.{self.table.name}"


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
    if UPDATING_META in [column.name for column in columns]:
        raise ConfigError(f"the table has a column {UPDATING_META!r}: choose others with columns", field="columns")
    if config.event_time_field:
        _check_event_time(columns, config.event_time_field)
    return CdcSettings(
        server=read_connection(config.connection),
        table=table,
        columns=columns,
        publication=config.publication or config.slot,
        slot=config.slot,
        creates=config.create,
        snapshot=SnapshotMode(config.snapshot),
        inserts_only=config.changes == "inserts" or config.snapshot == SnapshotMode.ONLY,
        chunk_rows=config.chunk_rows,
        ignores_truncate=config.on_truncate == "ignore",
        ends=bool(config.until) or config.snapshot == SnapshotMode.ONLY,
        event_time_field=config.event_time_field or None,
        max_lateness_us=config.max_lateness if config.HasField("max_lateness") else None,
        idle_after_us=config.idle_after if config.HasField("idle_after") else None,
        warn_lag_bytes=config.warn_lag,
        batch_rows=config.batch_rows,
        give_up_after_s=config.give_up_after / 1e6 or None,
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
    if config.HasField("max_lateness") and not config.event_time_field:
        raise ConfigError("max_lateness needs an event time: give event_time_field", field="max_lateness")


def _check_event_time(columns: tuple[TableColumn, ...], name: str) -> None:
    known = {column.name: column.type for column in columns}
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        raise ConfigError(
            f"no column {name!r}",
            field="event_time_field",
            value=name,
            allowed=list(known),
            suggestion=near[0] if near else None,
        )
    if not pa.types.is_timestamp(known[name]):
        raise ConfigError(f"column {name!r} is {known[name]}, not a timestamp", field="event_time_field", value=name)
