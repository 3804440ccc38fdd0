"""`std.blackhole`: a sink that forgets, to measure what comes before it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from arroyo_core.api import ArrowCollector, ArrowOperator, ArroyoSchema, Guarantee, OperatorContext


class Blackhole(ArrowOperator):
    """Takes rows and does nothing."""

    def name(self) -> str:
        return "std.blackhole"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        return inputs[0]

    def is_sink(self) -> bool:
        return True

    def guarantee(self) -> Guarantee:
        return Guarantee.EXACTLY_ONCE

    def guarantee_reason(self) -> str:
        return "it has no output that could come twice"

    def lives_on(self) -> bool:
        return True

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        return
