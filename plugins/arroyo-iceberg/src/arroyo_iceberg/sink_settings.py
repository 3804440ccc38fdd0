"""The config of a sink, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from arroyo_core.errors import ConfigError
from arroyo_iceberg.catalog import CatalogSettings, TableName, check_catalog, read_table_name, resolve_catalog
from arroyo_iceberg.iceberg_pb2 import SinkConfig
from arroyo_iceberg.partitions import PartitionField, read_partition_fields


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


_Choice = TypeVar("_Choice", Mode, Evolution, Missing)


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSettings:
    """A checked config."""

    catalog: CatalogSettings
    table: TableName
    mode: Mode
    keys: tuple[str, ...]
    partition_by: tuple[PartitionField, ...]
    evolution: Evolution
    if_missing: Missing
    max_file_bytes: int
    max_partitions: int
    branch: str
    deleted_column: str
    table_properties: Mapping[str, str]


def resolve_sink(config: SinkConfig) -> SinkConfig:
    """A copy of a config with absolute paths."""
    resolved = SinkConfig()
    resolved.CopyFrom(config)
    resolved.catalog.CopyFrom(resolve_catalog(config.catalog))
    return resolved


def check_sink(config: SinkConfig) -> SinkSettings:
    """The settings of a config, resolved or not; raises `ConfigError`. Reaches nothing."""
    mode = choice(Mode, config.mode, "mode")
    keys = tuple(config.keys)
    if mode is Mode.MERGE and not keys:
        raise ConfigError("mode: merge needs keys: the columns that tell which rows are the same", field="keys")
    if mode is not Mode.MERGE and keys:
        raise ConfigError("keys are of mode: merge", field="keys", value=list(keys))
    if mode is not Mode.MERGE and config.deleted_column:
        raise ConfigError("deleted_column is of mode: merge", field="deleted_column", value=config.deleted_column)
    for name, number in (("max_file_size", config.max_file_size), ("max_partitions", config.max_partitions)):
        if number <= 0:
            raise ConfigError(f"{name} must be positive", field=name, value=number)
    return SinkSettings(
        catalog=check_catalog(config.catalog),
        table=read_table_name(config.table),
        mode=mode,
        keys=keys,
        partition_by=read_partition_fields(config.partition_by),
        evolution=choice(Evolution, config.schema_evolution, "schema_evolution"),
        if_missing=choice(Missing, config.if_missing, "if_missing"),
        max_file_bytes=config.max_file_size,
        max_partitions=config.max_partitions,
        branch=config.branch or "main",
        deleted_column=config.deleted_column,
        table_properties=dict(config.table_properties),
    )


def choice(kind: type[_Choice], value: str, field: str) -> _Choice:
    """One of the names of an enum; raises `ConfigError`."""
    try:
        return kind(value.lower())
    except ValueError:
        raise ConfigError(
            f"unknown choice {value!r}", field=field, value=value, allowed=[each.value for each in kind]
        ) from None
