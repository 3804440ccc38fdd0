"""`iceberg.lookup`: an Iceberg table as the table of a lookup join, in one snapshot."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from arroyo_core.api import LookupTable
from arroyo_core.api.policy import current_policy
from arroyo_core.api.units import format_bytes
from arroyo_core.errors import ConfigError, DataError, ExternalError
from arroyo_iceberg.catalog import (
    CatalogSettings,
    TableName,
    check_catalog,
    read_table_name,
    resolve_catalog,
    translated,
)
from arroyo_iceberg.history import head_of
from arroyo_iceberg.iceberg_pb2 import LookupConfig, Planned
from arroyo_iceberg.reading import reader_of
from arroyo_iceberg.schemas import select_columns
from arroyo_iceberg.snapshots import Part, Snapshots
from arroyo_iceberg.source_settings import read_snapshot_id


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupSettings:
    """A checked config."""

    catalog: CatalogSettings
    table: TableName
    #: None where the table has none: it has no rows.
    snapshot: int | None
    table_id: str
    schema: pa.Schema
    #: The config itself, as bytes: tables of equal configs are the same.
    identity: bytes


class IcebergLookup(LookupTable):
    """Reads a snapshot of a table as a whole."""

    def __init__(self, settings: LookupSettings) -> None:
        self._settings = settings

    def name(self) -> str:
        return f"table {self._settings.table} of catalog {self._settings.catalog.shown}"

    def cache_key(self) -> Hashable:
        return ("iceberg.lookup", self._settings.identity)

    def schema(self) -> pa.Schema:
        """That of the table, as the planner has found it."""
        return self._settings.schema

    def read(self, schema: pa.Schema, max_bytes: int) -> pa.Table:
        batches: list[pa.RecordBatch] = []
        size = 0
        try:
            for batch in self._batches():
                size += batch.nbytes
                if size > max_bytes:
                    raise DataError(f"{self.name()} is larger than cache.max_bytes, {format_bytes(max_bytes)}")
                batches.append(batch)
        except FileNotFoundError as error:
            raise DataError(
                f"a file of {self.name()} is gone: {error}. Has snapshot {self._settings.snapshot} expired? Start the "
                "job again, and it reads the latest"
            ) from error
        except OSError as error:
            raise ExternalError(f"cannot read {self.name()}: {error}") from error
        return pa.Table.from_batches(batches, schema=self._settings.schema)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        settings = self._settings
        with translated(f"cannot read table {settings.table}"):
            table = settings.catalog.load(settings.table, doing="read")
            if str(table.metadata.table_uuid) != settings.table_id:
                raise DataError(f"{self.name()} is another one than planned: it was dropped and made again")
            if settings.snapshot is None:
                return
            if table.metadata.snapshot_by_id(settings.snapshot) is None:
                raise DataError(
                    f"snapshot {settings.snapshot} of {self.name()} has expired: start the job again, and it reads the "
                    "latest, or keep snapshots for longer than the job runs"
                )
            reader = reader_of(table, settings.schema)
            for unit in Snapshots(table).units(settings.snapshot, Part.ALL):
                for batch, _ in reader.read(unit):
                    yield batch


def resolve_lookup(config: LookupConfig) -> LookupConfig:
    """A copy of a config with absolute paths, the columns and the snapshot; raises `ConfigError`."""
    resolved = LookupConfig()
    resolved.CopyFrom(config)
    resolved.catalog.CopyFrom(resolve_catalog(config.catalog))
    if config.HasField("planned"):
        return resolved
    catalog, name = check_catalog(config.catalog), read_table_name(config.table)
    wanted = read_snapshot_id(config.snapshot, field="snapshot") if config.snapshot else None
    current_policy().check_network(f"to ask the catalog {catalog.shown}", field="catalog")
    table = catalog.load(name, doing="read")
    if wanted is None:
        head = head_of(table.metadata, config.branch or "main")
        wanted = head.snapshot_id if head is not None else None
    elif table.metadata.snapshot_by_id(wanted) is None:
        raise ConfigError(
            f"the table has no snapshot {wanted}: it never had it, or it has expired",
            field="snapshot",
            value=config.snapshot,
        )
    schema = select_columns(table.schema(), config.columns)
    resolved.planned.CopyFrom(
        Planned(schema=schema.serialize().to_pybytes(), start=wanted, table_id=str(table.metadata.table_uuid))
    )
    return resolved


def check_lookup(config: LookupConfig) -> LookupSettings:
    """The settings of a config, which is resolved first if it is not yet; raises `ConfigError`."""
    if not config.HasField("planned"):
        config = resolve_lookup(config)
    planned = config.planned
    return LookupSettings(
        catalog=check_catalog(config.catalog),
        table=read_table_name(config.table),
        snapshot=planned.start if planned.HasField("start") else None,
        table_id=planned.table_id,
        schema=pa.ipc.read_schema(pa.py_buffer(planned.schema)),
        identity=config.SerializeToString(deterministic=True),
    )
