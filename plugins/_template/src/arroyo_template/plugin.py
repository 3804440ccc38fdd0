"""Registers the operators. Every command imports this module: it must import no client library."""

from __future__ import annotations

from arroyo_core.api import ConstructedOperator, OperatorConstructor, Registry
from arroyo_core.plugin import hookimpl
from arroyo_template.config_pb2 import RunningCountConfig


class RunningCountConstructor(OperatorConstructor[RunningCountConfig]):
    """Makes `template.running_count`."""

    config_type = RunningCountConfig
    inputs = (1, 1)

    def with_config(self, config: RunningCountConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_template.running_count import RunningCount

        return ConstructedOperator.from_operator(RunningCount(config.key, config.column or "count"))


@hookimpl
def arroyo_register(registry: Registry) -> None:
    registry.add("template.running_count", RunningCountConstructor())
