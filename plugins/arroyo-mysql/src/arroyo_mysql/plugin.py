"""Registers the operators of MySQL and MariaDB; everything heavy is imported when one is made."""

from __future__ import annotations

from arroyo_core.api import ConstructedOperator, KeyedLookupTable, LookupConstructor, OperatorConstructor, Registry
from arroyo_core.plugin import hookimpl
from arroyo_mysql.cdc_pb2 import CdcConfig
from arroyo_mysql.lookup_pb2 import LookupConfig
from arroyo_mysql.sink_pb2 import SinkConfig
from arroyo_mysql.source_pb2 import SourceConfig


class CdcConstructor(OperatorConstructor[CdcConfig]):
    """Makes `mysql.cdc`. The resolved config has what the catalogue says of the table."""

    config_type = CdcConfig
    inputs = (0, 0)

    def resolve(self, config: CdcConfig) -> CdcConfig:
        from arroyo_mysql.cdc.settings import resolve_cdc

        return resolve_cdc(config)

    def with_config(self, config: CdcConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_mysql.cdc.settings import check_cdc
        from arroyo_mysql.cdc.source import MysqlCdc

        return ConstructedOperator.from_source(MysqlCdc(check_cdc(config)))


class SourceConstructor(OperatorConstructor[SourceConfig]):
    """Makes `mysql.source`."""

    config_type = SourceConfig
    inputs = (0, 0)

    def with_config(self, config: SourceConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_mysql.growing.settings import check_source
        from arroyo_mysql.growing.source import MysqlSource

        return ConstructedOperator.from_source(MysqlSource(check_source(config)))


class SinkConstructor(OperatorConstructor[SinkConfig]):
    """Makes `mysql.sink`."""

    config_type = SinkConfig
    inputs = (1, 1)
    is_sink = True

    def with_config(self, config: SinkConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_mysql.sink.settings import check_sink
        from arroyo_mysql.sink.sink import MysqlSink

        return ConstructedOperator.from_operator(MysqlSink(check_sink(config)))


class MysqlLookupConstructor(LookupConstructor[LookupConfig]):
    """Makes `mysql.lookup`."""

    config_type = LookupConfig

    def with_config(self, config: LookupConfig, registry: Registry) -> KeyedLookupTable:
        from arroyo_mysql.lookup.lookup import MysqlLookup
        from arroyo_mysql.lookup.settings import check_lookup

        return MysqlLookup(check_lookup(config))


@hookimpl
def arroyo_register(registry: Registry) -> None:
    registry.add("mysql.cdc", CdcConstructor())
    registry.add("mysql.source", SourceConstructor())
    registry.add("mysql.sink", SinkConstructor())
    registry.add_lookup("mysql.lookup", MysqlLookupConstructor())
