"""Registers the sink and the lookup. Every command imports this module: it must import no client library."""

from __future__ import annotations

from arroyo_core.api import ConstructedOperator, LookupConstructor, LookupSource, OperatorConstructor, Registry
from arroyo_core.api.policy import current_policy
from arroyo_core.api.urls import absolute_url
from arroyo_core.plugin import hookimpl
from arroyo_template_database.config_pb2 import LookupConfig, SinkConfig


class SinkConstructor(OperatorConstructor[SinkConfig]):
    """Makes `template.sink`. The resolved config has an absolute path: a driver may begin in another folder."""

    config_type = SinkConfig
    inputs = (1, 1)
    is_sink = True

    def resolve(self, config: SinkConfig) -> SinkConfig:
        resolved = SinkConfig()
        resolved.CopyFrom(config)
        resolved.path = absolute_url(config.path)
        return resolved

    def with_config(self, config: SinkConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_connectors import read_mode

        from arroyo_template_database.sink import DatabaseSink

        sink = DatabaseSink(
            config.path,
            config.table,
            mode=read_mode(config.mode),
            keys=config.keys,
            deleted_column=config.deleted_column,
        )
        return ConstructedOperator.from_operator(sink)


class TableConstructor(LookupConstructor[LookupConfig]):
    """Makes `template.lookup`. To plan it is to look at the table, which somebody who is not trusted may not."""

    config_type = LookupConfig

    def resolve(self, config: LookupConfig) -> LookupConfig:
        resolved = LookupConfig()
        resolved.CopyFrom(config)
        resolved.path = absolute_url(config.path)
        return resolved

    def with_config(self, config: LookupConfig, registry: Registry) -> LookupSource:
        from arroyo_template_database.lookup import DatabaseLookup

        current_policy().check_path(config.path, field="path")
        return DatabaseLookup(config.path, config.table)


@hookimpl
def arroyo_register(registry: Registry) -> None:
    registry.add("template.sink", SinkConstructor())
    registry.add_lookup("template.lookup", TableConstructor())
