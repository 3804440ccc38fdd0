"""Registers `nexmark.source`."""

from __future__ import annotations

from arroyo_core.api import ConstructedOperator, OperatorConstructor, Registry
from arroyo_core.plugin import hookimpl
from arroyo_nexmark import nexmark_pb2


class NexmarkSourceConstructor(OperatorConstructor[nexmark_pb2.NexmarkSource]):
    config_type = nexmark_pb2.NexmarkSource
    inputs = (0, 0)

    def with_config(self, config: nexmark_pb2.NexmarkSource, registry: Registry) -> ConstructedOperator:
        from arroyo_nexmark.source import from_config

        return ConstructedOperator.from_source(from_config(config))


@hookimpl
def arroyo_register(registry: Registry) -> None:
    registry.add("nexmark.source", NexmarkSourceConstructor())
