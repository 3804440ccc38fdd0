"""`delta.lookup`: a Delta Lake table as the table of a lookup join, in one version."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import pyarrow as pa

from arroyo_core.api import LookupTable
from arroyo_core.api.units import format_bytes
from arroyo_core.errors import ConfigError, DataError
from arroyo_delta.delta_pb2 import LookupConfig, Planned
from arroyo_delta.location import TableLocation, check_reading, make_location
from arroyo_delta.log import check_inside
from arroyo_delta.source_settings import select


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupSettings:
    """A checked config."""

    location: TableLocation
    version: int
    schema: pa.Schema
    #: The config itself, as bytes: tables of equal configs are the same.
    identity: bytes


class DeltaLookup(LookupTable):
    """Reads a version of a table as a whole; whatever the library reads, deletion vectors and column mapping too."""

    def __init__(self, settings: LookupSettings) -> None:
        self._settings = settings

    def name(self) -> str:
        return self._settings.location.place

    def cache_key(self) -> Hashable:
        return ("delta.lookup", self._settings.identity)

    def schema(self) -> pa.Schema:
        """That of the version, as the planner has found it."""
        return self._settings.schema

    def read(self, schema: pa.Schema, max_bytes: int) -> pa.Table:
        settings = self._settings
        table = settings.location.open(settings.version)
        if table is None:
            raise DataError(f"there is no table at {settings.location.place} any more")
        check_inside(table, settings.location.place)
        batches: list[pa.RecordBatch] = []
        size = 0
        with settings.location.translating("cannot read"):
            reader = pa.RecordBatchReader.from_stream(table.scan(columns=settings.schema.names))
            for batch in reader:
                size += batch.nbytes
                if size > max_bytes:
                    raise DataError(
                        f"the table {settings.location.place} is larger than cache.max_bytes, {format_bytes(max_bytes)}"
                    )
                batches.append(batch)
        # The library gives views of texts.
        return pa.Table.from_batches(batches, schema=reader.schema).select(settings.schema.names).cast(settings.schema)


def resolve_lookup(config: LookupConfig) -> LookupConfig:
    """A copy of a config with an absolute path, the version, and its columns; raises `ConfigError`."""
    resolved = LookupConfig()
    resolved.CopyFrom(config)
    location = make_location(config.table, config.storage_options)
    resolved.table = location.url
    if config.planned.table_id:
        return resolved
    check_reading(location)
    table = location.open(config.version if config.HasField("version") else None)
    if table is None:
        raise ConfigError(f"there is no table at {location.place}", field="table", value=location.place)
    schema = pa.schema([field.remove_metadata() for field in pa.schema(table.schema())])
    resolved.planned.CopyFrom(
        Planned(version=table.version(), table_id=str(table.metadata().id), schema=schema.serialize().to_pybytes())
    )
    return resolved


def check_lookup(config: LookupConfig) -> LookupSettings:
    """The settings of a config, which is resolved first if it is not yet; raises `ConfigError`."""
    if not config.planned.table_id:
        config = resolve_lookup(config)
    return LookupSettings(
        location=make_location(config.table, config.storage_options),
        version=config.planned.version,
        schema=select(pa.ipc.read_schema(pa.py_buffer(config.planned.schema)), config.columns),
        identity=config.SerializeToString(deterministic=True),
    )
