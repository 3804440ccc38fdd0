"""Registers `impulse.source`; apart from `nexmark.source`, because an entry point names one prefix."""

from __future__ import annotations

from arroyo_core.api import ConstructedOperator, OperatorConstructor, Registry
from arroyo_core.plugin import hookimpl
from arroyo_nexmark import nexmark_pb2


class ImpulseSourceConstructor(OperatorConstructor[nexmark_pb2.ImpulseSource]):
    config_type = nexmark_pb2.ImpulseSource
    inputs = (0, 0)

    def with_config(self, config: nexmark_pb2.ImpulseSource, registry: Registry) -> ConstructedOperator:
        from arroyo_nexmark.impulse import from_config

        return ConstructedOperator.from_source(from_config(config))


@hookimpl
def arroyo_register(registry: Registry) -> None:
    registry.add("impulse.source", ImpulseSourceConstructor())
