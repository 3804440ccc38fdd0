"""How a table is followed, whatever the database: the part of a config that all of them have, checked."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import pyarrow as pa

from arroyo_connectors.columns import check_event_time
from arroyo_core.api.updating import UPDATING_META
from arroyo_core.errors import ConfigError


class SnapshotMode(StrEnum):
    """Which of the rows are read that were there before the job."""

    INITIAL = "initial"
    NEVER = "never"
    ONLY = "only"


class CdcFields(Protocol):
    """The fields that the config of a source of changes has. Durations are in microseconds; 0 and "" are none."""

    snapshot: str
    changes: str
    chunk_rows: int
    on_truncate: str
    until: str
    event_time_field: str
    max_lateness: int
    idle_after: int
    warn_lag: int
    batch_rows: int
    give_up_after: int

    # A message of protobuf says of an optional field whether it was given.
    def HasField(self, name: str, /) -> bool: ...  # noqa: N802


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowSettings:
    """What is read, and how."""

    #: The table for people, without quotes: `shop.orders`.
    table: str
    #: The columns that are read, and the names of those of the primary key; none where there is none.
    schema: pa.Schema
    key: tuple[str, ...]
    chunk_rows: int
    batch_rows: int
    warn_lag_bytes: int
    snapshot: SnapshotMode = SnapshotMode.INITIAL
    inserts_only: bool = False
    ignores_truncate: bool = False
    ends: bool = False
    event_time_field: str | None = None
    max_lateness_us: int | None = None
    idle_after_us: int | None = None
    #: None for never.
    give_up_after_s: float | None = None


def check_written(config: CdcFields) -> None:
    """What can be said without the database; raises `ConfigError`."""
    if config.HasField("max_lateness") and not config.event_time_field:
        raise ConfigError("max_lateness needs an event time: give event_time_field", field="max_lateness")


def read_follow(config: CdcFields, *, table: str, schema: pa.Schema, key: tuple[str, ...]) -> FollowSettings:
    """The settings of a config whose table is known; raises `ConfigError`."""
    if UPDATING_META in schema.names:
        raise ConfigError(f"the table has a column {UPDATING_META!r}: choose others with columns", field="columns")
    if config.event_time_field:
        check_event_time(config.event_time_field, schema)
    is_only = config.snapshot == SnapshotMode.ONLY
    return FollowSettings(
        table=table,
        schema=schema,
        key=key,
        snapshot=SnapshotMode(config.snapshot),
        inserts_only=config.changes == "inserts" or is_only,
        chunk_rows=config.chunk_rows,
        batch_rows=config.batch_rows,
        ignores_truncate=config.on_truncate == "ignore",
        ends=bool(config.until) or is_only,
        event_time_field=config.event_time_field or None,
        max_lateness_us=config.max_lateness if config.HasField("max_lateness") else None,
        idle_after_us=config.idle_after if config.HasField("idle_after") else None,
        warn_lag_bytes=config.warn_lag,
        give_up_after_s=config.give_up_after / 1e6 or None,
    )
