"""Registers the operator. Every command imports this module: it must import no client library."""

from __future__ import annotations

from arroyo_core.api import ConstructedOperator, OperatorConstructor, Registry
from arroyo_core.plugin import hookimpl
from arroyo_template_operator.config_pb2 import TotalsConfig


class TotalsConstructor(OperatorConstructor[TotalsConfig]):
    """Makes `template.totals`."""

    config_type = TotalsConfig
    inputs = (1, 1)

    def with_config(self, config: TotalsConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_template_operator.totals import Totals

        return ConstructedOperator.from_operator(Totals(config.key, config.value, config.column))


@hookimpl
def arroyo_register(registry: Registry) -> None:
    registry.add("template.totals", TotalsConstructor())
