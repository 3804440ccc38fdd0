"""Operators under observation: every batch is looked at as the operator emits it, before the runtime conforms it."""

from __future__ import annotations

from abc import update_abstractmethods
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pyarrow as pa

from arroyo_core.api import (
    ArrowCollector,
    ArrowOperator,
    ArroyoSchema,
    CheckpointBarrier,
    OperatorContext,
    SignalMessage,
    SourceCollector,
    SourceContext,
    SourceFinishType,
    SourceOperator,
    Watermark,
)

#: Told of each batch: the side output's name or None, and the batch.
Look = Callable[[str | None, pa.RecordBatch], None]
KindT = TypeVar("KindT", bound=type)


def delegating(trait: type) -> Callable[[KindT], KindT]:
    """Every public method of `trait` that the class does not define itself is that of its `inner`."""

    def delegate(name: str) -> Callable[..., Any]:
        def method(self: Any, *arguments: Any, **options: Any) -> Any:
            return getattr(self.inner, name)(*arguments, **options)

        method.__name__ = name
        return method

    def decorate(kind: KindT) -> KindT:
        for name in dir(trait):
            if not name.startswith("_") and callable(getattr(trait, name)) and name not in vars(kind):
                setattr(kind, name, delegate(name))
        update_abstractmethods(kind)
        return kind

    return decorate


class ObservedCollector(SourceCollector):
    """Passes everything on after `look` has seen it."""

    def __init__(self, inner: ArrowCollector, look: Look) -> None:
        self._inner = inner
        self._look = look

    def collect(self, batch: pa.RecordBatch) -> None:
        self._look(None, batch)
        self._inner.collect(batch)

    def collect_side(self, output: str, batch: pa.RecordBatch) -> None:
        self._look(output, batch)
        self._inner.collect_side(output, batch)

    def broadcast_watermark(self, watermark: Watermark) -> None:
        self._inner.broadcast_watermark(watermark)


@delegating(ArrowOperator)
class ObservedOperator(ArrowOperator):
    """Does what `inner` does."""

    def __init__(self, inner: ArrowOperator, look: Look) -> None:
        self.inner = inner
        self._look = look

    def name(self) -> str:
        return self.inner.name()

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        return self.inner.output_schema(inputs)

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        self.inner.process_batch(batch, ctx, self._watched(collector))

    def process_batch_index(
        self, index: int, total_inputs: int, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector
    ) -> None:
        self.inner.process_batch_index(index, total_inputs, batch, ctx, self._watched(collector))

    def handle_watermark_int(
        self, watermark: Watermark, ctx: OperatorContext, collector: ArrowCollector
    ) -> Watermark | None:
        return self.inner.handle_watermark_int(watermark, ctx, self._watched(collector))

    def handle_checkpoint(self, barrier: CheckpointBarrier, ctx: OperatorContext, collector: ArrowCollector) -> None:
        self.inner.handle_checkpoint(barrier, ctx, self._watched(collector))

    def handle_tick(self, tick: int, ctx: OperatorContext, collector: ArrowCollector) -> None:
        self.inner.handle_tick(tick, ctx, self._watched(collector))

    def on_close(
        self, final_message: SignalMessage | None, ctx: OperatorContext, collector: ArrowCollector
    ) -> SignalMessage | None:
        return self.inner.on_close(final_message, ctx, self._watched(collector))

    def _watched(self, collector: ArrowCollector) -> ArrowCollector:
        return ObservedCollector(collector, self._look)


@delegating(SourceOperator)
class ObservedSource(SourceOperator):
    """Does what `inner` does; `select` takes columns out of its output schema, as the planner does."""

    def __init__(
        self,
        inner: SourceOperator,
        look: Callable[[SourceContext, pa.RecordBatch], None],
        select: Callable[[ArroyoSchema], ArroyoSchema] = lambda schema: schema,
    ) -> None:
        self.inner = inner
        self._look = look
        self._select = select

    def name(self) -> str:
        return self.inner.name()

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        return self._select(self.inner.output_schema(inputs))

    def run(self, ctx: SourceContext, collector: SourceCollector) -> SourceFinishType:
        return self.inner.run(ctx, ObservedCollector(collector, lambda _, batch: self._look(ctx, batch)))
