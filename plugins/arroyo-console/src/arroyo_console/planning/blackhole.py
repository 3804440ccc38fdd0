"""The sink of a preview: it takes rows, and does nothing with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from google.protobuf.empty_pb2 import Empty

from arroyo_core.api import (
    ArrowCollector,
    ArrowOperator,
    ArroyoSchema,
    ConstructedOperator,
    OperatorConstructor,
    OperatorContext,
    Registry,
)
from arroyo_core.plugin import PluginSet

BLACKHOLE = "console.preview_sink"


class Blackhole(ArrowOperator):
    """Takes rows of any columns."""

    def name(self) -> str:
        return BLACKHOLE

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        return inputs[0]

    def is_sink(self) -> bool:
        return True

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        return


class BlackholeConstructor(OperatorConstructor[Empty]):
    """It has no settings, and any number of inputs."""

    config_type = Empty
    inputs = (1, None)
    is_sink = True

    def with_config(self, config: Any, registry: Registry) -> ConstructedOperator:
        return ConstructedOperator.from_operator(Blackhole())


def with_blackhole(plugins: PluginSet) -> PluginSet:
    """These plugins, and this operator."""
    return replace(plugins, registry=plugins.registry.with_constructor(BLACKHOLE, BlackholeConstructor()))
