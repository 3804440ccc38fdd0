"""Registers the Iceberg operators; everything heavy is imported when one is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arroyo_core.api import ConstructedOperator, LookupConstructor, LookupTable, OperatorConstructor, Registry
from arroyo_core.plugin import hookimpl
from arroyo_iceberg.iceberg_pb2 import LookupConfig, SinkConfig, SourceConfig

if TYPE_CHECKING:
    from arroyo_core.cli.commands import Commands


class SourceConstructor(OperatorConstructor[SourceConfig]):
    """Makes `iceberg.source`. The resolved config has the columns, and the snapshots to begin and to end with."""

    config_type = SourceConfig
    inputs = (0, 0)

    def resolve(self, config: SourceConfig) -> SourceConfig:
        from arroyo_iceberg.source_settings import resolve_source

        return resolve_source(config)

    def with_config(self, config: SourceConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_iceberg.source import IcebergSource
        from arroyo_iceberg.source_settings import check_source

        return ConstructedOperator.from_source(IcebergSource(check_source(config)))


class SinkConstructor(OperatorConstructor[SinkConfig]):
    """Makes `iceberg.sink`. The resolved config has absolute paths, for executors elsewhere."""

    config_type = SinkConfig
    inputs = (1, 1)
    is_sink = True

    def resolve(self, config: SinkConfig) -> SinkConfig:
        from arroyo_iceberg.sink_settings import resolve_sink

        return resolve_sink(config)

    def with_config(self, config: SinkConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_iceberg.sink import IcebergSink
        from arroyo_iceberg.sink_settings import check_sink

        return ConstructedOperator.from_operator(IcebergSink(check_sink(config)))


class TableLookupConstructor(LookupConstructor[LookupConfig]):
    """Makes `iceberg.lookup`. The resolved config has the columns and the snapshot."""

    config_type = LookupConfig

    def resolve(self, config: LookupConfig) -> LookupConfig:
        from arroyo_iceberg.lookup import resolve_lookup

        return resolve_lookup(config)

    def with_config(self, config: LookupConfig, registry: Registry) -> LookupTable:
        from arroyo_iceberg.lookup import IcebergLookup, check_lookup

        return IcebergLookup(check_lookup(config))


@hookimpl
def arroyo_register(registry: Registry) -> None:
    registry.add("iceberg.source", SourceConstructor())
    registry.add("iceberg.sink", SinkConstructor())
    registry.add_lookup("iceberg.lookup", TableLookupConstructor())


@hookimpl
def arroyo_add_command(commands: Commands) -> None:
    # Imported here: executors load plugins too, and need no commands.
    from arroyo_iceberg.commands import command

    command.add_command(commands)
