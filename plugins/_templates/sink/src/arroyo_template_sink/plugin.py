"""Registers the sink. Every command imports this module: it must import no client library."""

from __future__ import annotations

import re

from arroyo_core.api import ConstructedOperator, OperatorConstructor, Registry
from arroyo_core.errors import ConfigError
from arroyo_core.plugin import hookimpl
from arroyo_template_sink.config_pb2 import LedgerConfig


class LedgerConstructor(OperatorConstructor[LedgerConfig]):
    """Makes `template.ledger`."""

    config_type = LedgerConfig
    inputs = (1, 1)
    is_sink = True

    def with_config(self, config: LedgerConfig, registry: Registry) -> ConstructedOperator:
        from arroyo_template_sink.ledger import EPOCHS, Ledger

        if not config.path:
            raise ConfigError("path is required", field="path")
        # It becomes part of a statement.
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", config.table) or config.table == EPOCHS:
            raise ConfigError("not a name for a table", field="table", value=config.table)
        return ConstructedOperator.from_operator(Ledger(config.path, config.table))


@hookimpl
def arroyo_register(registry: Registry) -> None:
    registry.add("template.ledger", LedgerConstructor())
