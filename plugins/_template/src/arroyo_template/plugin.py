"""Registers the operators. Every command imports this module: it must import no client library."""

from __future__ import annotations

from arroyo_core.api import ConstructedOperator, OperatorConstructor, Registry
from arroyo_core.errors import ConfigError
from arroyo_core.plugin import hookimpl
from arroyo_template.config_pb2 import RunningCountConfig, SqliteUpsertConfig


class RunningCountConstructor(OperatorConstructor[RunningCountConfig]):
    """Makes `template.running_count`."""

    config_type = RunningCountConfig
    inputs = (1, 1)

    def with_config(self, config: RunningCountConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_template.running_count import RunningCount

        return ConstructedOperator.from_operator(RunningCount(config.key, config.column))


class SqliteUpsertConstructor(OperatorConstructor[SqliteUpsertConfig]):
    """Makes `template.sqlite_upsert`."""

    config_type = SqliteUpsertConfig
    inputs = (1, 1)
    is_sink = True

    def with_config(self, config: SqliteUpsertConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_template.sqlite_upsert import SqliteUpsert

        for field in ("path", "key"):
            if not getattr(config, field):
                raise ConfigError(f"{field} is required", field=field)
        return ConstructedOperator.from_operator(SqliteUpsert(config.path, config.key))


@hookimpl
def arroyo_register(registry: Registry) -> None:
    registry.add("template.running_count", RunningCountConstructor())
    registry.add("template.sqlite_upsert", SqliteUpsertConstructor())
