"""Registers the PostgreSQL operators; everything heavy is imported when one is made."""

from __future__ import annotations

from arroyo_core.api import ConstructedOperator, KeyedLookupTable, LookupConstructor, OperatorConstructor, Registry
from arroyo_core.plugin import hookimpl
from arroyo_postgres.cdc_pb2 import CdcConfig
from arroyo_postgres.lookup_pb2 import LookupConfig
from arroyo_postgres.sink_pb2 import SinkConfig
from arroyo_postgres.source_pb2 import SourceConfig


class CdcConstructor(OperatorConstructor[CdcConfig]):
    """Makes `postgres.cdc`. The resolved config has what the catalogue says of the table."""

    config_type = CdcConfig
    inputs = (0, 0)

    def resolve(self, config: CdcConfig) -> CdcConfig:
        from arroyo_postgres.cdc.settings import resolve_cdc

        return resolve_cdc(config)

    def with_config(self, config: CdcConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_postgres.cdc.settings import check_cdc
        from arroyo_postgres.cdc.source import PostgresCdc

        return ConstructedOperator.from_source(PostgresCdc(check_cdc(config)))


class SourceConstructor(OperatorConstructor[SourceConfig]):
    """Makes `postgres.source`."""

    config_type = SourceConfig
    inputs = (0, 0)

    def with_config(self, config: SourceConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_postgres.growing.settings import check_source
        from arroyo_postgres.growing.source import PostgresSource

        return ConstructedOperator.from_source(PostgresSource(check_source(config)))


class SinkConstructor(OperatorConstructor[SinkConfig]):
    """Makes `postgres.sink`."""

    config_type = SinkConfig
    inputs = (1, 1)
    is_sink = True

    def with_config(self, config: SinkConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_postgres.sink.settings import check_sink
        from arroyo_postgres.sink.sink import PostgresSink

        return ConstructedOperator.from_operator(PostgresSink(check_sink(config)))


class PostgresLookupConstructor(LookupConstructor[LookupConfig]):
    """Makes `postgres.lookup`."""

    config_type = LookupConfig

    def with_config(self, config: LookupConfig, registry: Registry) -> KeyedLookupTable:
        from arroyo_postgres.lookup.lookup import PostgresLookup, check_lookup

        return PostgresLookup(check_lookup(config))


@hookimpl
def arroyo_register(registry: Registry) -> None:
    registry.add("postgres.cdc", CdcConstructor())
    registry.add("postgres.source", SourceConstructor())
    registry.add("postgres.sink", SinkConstructor())
    registry.add_lookup("postgres.lookup", PostgresLookupConstructor())
