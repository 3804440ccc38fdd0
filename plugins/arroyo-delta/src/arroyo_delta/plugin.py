"""Registers the Delta operators; everything heavy is imported when one is made."""

from __future__ import annotations

from arroyo_core.api import ConstructedOperator, LookupConstructor, LookupTable, OperatorConstructor, Registry
from arroyo_core.plugin import hookimpl
from arroyo_delta.delta_pb2 import LookupConfig, SinkConfig, SourceConfig


class SourceConstructor(OperatorConstructor[SourceConfig]):
    """Makes `delta.source`. The resolved config has the table's columns and the version to begin with."""

    config_type = SourceConfig
    inputs = (0, 0)

    def resolve(self, config: SourceConfig) -> SourceConfig:
        from arroyo_delta.source_settings import resolve_source

        return resolve_source(config)

    def with_config(self, config: SourceConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_delta.source import DeltaSource
        from arroyo_delta.source_settings import check_source

        return ConstructedOperator.from_source(DeltaSource(check_source(config)))


class SinkConstructor(OperatorConstructor[SinkConfig]):
    """Makes `delta.sink`. The resolved config has an absolute path, for executors elsewhere."""

    config_type = SinkConfig
    inputs = (1, 1)
    is_sink = True

    def resolve(self, config: SinkConfig) -> SinkConfig:
        from arroyo_delta.sink_settings import resolve_sink

        return resolve_sink(config)

    def with_config(self, config: SinkConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_delta.sink import DeltaSink
        from arroyo_delta.sink_settings import check_sink

        return ConstructedOperator.from_operator(DeltaSink(check_sink(config)))


class TableLookupConstructor(LookupConstructor[LookupConfig]):
    """Makes `delta.lookup`. The resolved config has the table's columns and its version."""

    config_type = LookupConfig

    def resolve(self, config: LookupConfig) -> LookupConfig:
        from arroyo_delta.lookup import resolve_lookup

        return resolve_lookup(config)

    def with_config(self, config: LookupConfig, registry: Registry) -> LookupTable:
        from arroyo_delta.lookup import DeltaLookup, check_lookup

        return DeltaLookup(check_lookup(config))


@hookimpl
def arroyo_register(registry: Registry) -> None:
    registry.add("delta.source", SourceConstructor())
    registry.add("delta.sink", SinkConstructor())
    registry.add_lookup("delta.lookup", TableLookupConstructor())
