"""The config of a sink, checked."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from arroyo_core.errors import ConfigError
from arroyo_delta.delta_pb2 import SinkConfig
from arroyo_delta.location import TableLocation, make_location

ChoiceT = TypeVar("ChoiceT", bound=StrEnum)


class Mode(StrEnum):
    """What becomes of the rows of an epoch."""

    APPEND = "append"
    MERGE = "merge"
    OVERWRITE_PARTITIONS = "overwrite_partitions"


class Evolution(StrEnum):
    """What to do with columns that the table has not."""

    NONE = "none"
    ADD = "add"


class Missing(StrEnum):
    """What to do when there is no table."""

    FAIL = "fail"
    CREATE = "create"


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSettings:
    """A checked config."""

    location: TableLocation
    mode: Mode
    keys: tuple[str, ...]
    #: Of merges: true where the key is gone; empty where the input has none.
    deleted_column: str
    #: Empty where it is that of the table.
    partition_by: tuple[str, ...]
    #: Whether columns are added to the table.
    can_add: bool
    #: Whether the table is made where there is none.
    creates: bool
    max_file_bytes: int
    max_partitions: int


def resolve_sink(config: SinkConfig) -> SinkConfig:
    """A copy of a config with an absolute path; raises `ConfigError`."""
    resolved = SinkConfig()
    resolved.CopyFrom(config)
    resolved.table = make_location(config.table, config.storage_options).url
    return resolved


def check_sink(config: SinkConfig) -> SinkSettings:
    """The settings of a config, resolved or not; raises `ConfigError`."""
    mode = choice(Mode, config.mode, "mode")
    if mode is Mode.MERGE and not config.keys:
        raise ConfigError("mode: merge needs keys, the columns that tell which rows are the same", field="keys")
    if mode is not Mode.MERGE and config.keys:
        raise ConfigError(f"mode: {mode} has no keys, only merge has", field="keys", value=list(config.keys))
    if mode is not Mode.MERGE and config.deleted_column:
        raise ConfigError("deleted_column is of mode: merge", field="deleted_column", value=config.deleted_column)
    if config.max_file_size <= 0:
        raise ConfigError("max_file_size must be positive", field="max_file_size", value=config.max_file_size)
    if config.max_partitions <= 0:
        raise ConfigError("max_partitions must be positive", field="max_partitions", value=config.max_partitions)
    return SinkSettings(
        location=make_location(config.table, config.storage_options),
        mode=mode,
        keys=tuple(config.keys),
        deleted_column=config.deleted_column,
        partition_by=tuple(config.partition_by),
        can_add=choice(Evolution, config.schema_evolution, "schema_evolution") is Evolution.ADD,
        creates=choice(Missing, config.if_missing, "if_missing") is Missing.CREATE,
        max_file_bytes=config.max_file_size,
        max_partitions=config.max_partitions,
    )


def choice(kind: type[ChoiceT], text: str, field: str) -> ChoiceT:
    """A value of an enum; raises `ConfigError`."""
    try:
        return kind(text.lower())
    except ValueError:
        raise ConfigError(f"unknown choice {text!r}", field=field, value=text, allowed=list(kind)) from None
