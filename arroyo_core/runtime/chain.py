"""`ChainedOperator`: operators that run one after the other in one task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from arroyo_core.api import (
    ArrowCollector,
    ArrowOperator,
    ArroyoSchema,
    CheckpointBarrier,
    SignalMessage,
    Watermark,
)
from arroyo_core.errors import DataError
from arroyo_core.runtime.boundary import Boundary
from arroyo_core.runtime.context import RuntimeContext
from arroyo_core.runtime.watermarks import Level


class Output(Protocol):
    """An edge that leaves a chain: into the same partition, or through the exchange."""

    def send(self, batch: pa.RecordBatch) -> None: ...

    def send_watermark(self, watermark: Watermark) -> None: ...


@dataclass(frozen=True, slots=True)
class OperatorSlot:
    """One operator with what belongs to it."""

    operator: ArrowOperator
    ctx: RuntimeContext
    boundary: Boundary
    #: Whether it has been started in an earlier epoch.
    is_started: bool = False
    #: Whether it goes on in the next epoch, unless its input has ended.
    lives_on: bool = False


class ChainedOperator:
    """Pushes batches and signals through its operators, head to tail, and out of the chain."""

    def __init__(self, slots: Sequence[OperatorSlot], outputs: Sequence[tuple[str | None, Output]]) -> None:
        """`outputs` are those of the tail, each with the name of the side output it carries, if it is one."""
        self.slots = slots
        self._outputs = [output for name, output in outputs if name is None]
        self._side_outputs = [(name, output) for name, output in outputs if name is not None]
        self._collectors = [ChainCollector(self, position) for position in range(len(slots))]

    def on_start(self) -> None:
        for slot in self.slots:
            if not slot.is_started:
                with slot.boundary:
                    slot.operator.on_start(slot.ctx)

    def process_batch(self, batch: pa.RecordBatch, *, index: int = 0, total_inputs: int = 1, position: int = 0) -> None:
        """Give rows to the operator at `position`; past the tail they leave the chain."""
        if position == len(self.slots):
            for output in self._outputs:
                output.send(batch)
            return
        slot = self.slots[position]
        slot.ctx.metrics.receive(batch)
        with slot.boundary:
            slot.operator.process_batch_index(index, total_inputs, batch, slot.ctx, self._collectors[position])

    def process_side(self, name: str, batch: pa.RecordBatch, *, position: int) -> None:
        """Rows of a side output: only that of the tail can have readers."""
        if position == len(self.slots):
            for output_name, output in self._side_outputs:
                if output_name == name:
                    output.send(batch)

    def handle_watermark(self, watermark: Watermark, *, position: int = 0) -> None:
        """Tell the operator at `position`; a watermark that changes nothing for it is dropped."""
        if position == len(self.slots):
            for output in (*self._outputs, *(output for _, output in self._side_outputs)):
                output.send_watermark(watermark)
            return
        slot = self.slots[position]
        for moved in slot.ctx.receive(watermark):
            with slot.boundary:
                passed_on = slot.operator.handle_watermark_int(moved, slot.ctx, self._collectors[position])
            if passed_on is not None:
                self.send_watermark(passed_on, position=position)

    def send_watermark(self, watermark: Watermark, *, position: int) -> None:
        """Hand on what the operator at `position` sends."""
        for moved in self.slots[position].ctx.send(watermark):
            self.handle_watermark(moved, position=position + 1)

    def restate_watermarks(self, source: Level | None) -> None:
        """Tell each operator what the one before it sent last: those that are new in the pipeline do not know it.

        `source` is what the source in front has sent, if there is one.
        """
        sent = source
        for position, slot in enumerate(self.slots):
            for watermark in sent.since(slot.ctx.levels.input) if sent is not None else ():
                self.handle_watermark(watermark, position=position)
            sent = slot.ctx.levels.output

    def handle_tick(self, tick: int) -> None:
        for slot, collector in zip(self.slots, self._collectors, strict=True):
            with slot.boundary:
                slot.operator.handle_tick(tick, slot.ctx, collector)

    def on_close(self, final: SignalMessage | None) -> SignalMessage | None:
        """Close every operator that has not heard of the end yet; returns the message to send on.

        Without a message, those that live on stay as they are.
        """
        for slot, collector in zip(self.slots, self._collectors, strict=True):
            is_left_alone = slot.lives_on if final is None else slot.ctx.is_closed
            if not is_left_alone:
                with slot.boundary:
                    final = slot.operator.on_close(final, slot.ctx, collector)
        return final

    def handle_checkpoint(self, barrier: CheckpointBarrier) -> None:
        """Let every operator prepare; rows it emits reach the operators behind it before their turn."""
        for slot, collector in zip(self.slots, self._collectors, strict=True):
            with slot.boundary:
                slot.operator.handle_checkpoint(barrier, slot.ctx, collector)

    def tick_interval_s(self) -> float | None:
        """The shortest interval that an operator asks for."""
        intervals = [slot.operator.tick_interval() for slot in self.slots]
        return min((interval.total_seconds() for interval in intervals if interval is not None), default=None)


class ChainCollector(ArrowCollector):
    """Gives an operator's output to the next one."""

    def __init__(self, chain: ChainedOperator, position: int) -> None:
        self._chain = chain
        self._next = position + 1
        self._ctx = chain.slots[position].ctx

    def collect(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows == 0:
            return
        batch = conform(batch, self._ctx.output_schema)
        self._ctx.metrics.send(batch)
        self._chain.process_batch(batch, position=self._next)

    def collect_side(self, output: str, batch: pa.RecordBatch) -> None:
        declared = self._ctx.side_schemas.get(output)
        if declared is None:
            raise DataError(f"emitted rows to {output!r}, which is none of its side outputs")
        if batch.num_rows:
            self._chain.process_side(output, conform(batch, declared), position=self._next)

    def broadcast_watermark(self, watermark: Watermark) -> None:
        self._chain.send_watermark(watermark, position=self._next - 1)


def conform(batch: pa.RecordBatch, declared: ArroyoSchema) -> pa.RecordBatch:
    """The batch with exactly the declared schema; only nullability and metadata may differ before."""
    expected = declared.schema
    if batch.schema.equals(expected):
        return batch
    if batch.schema.names != expected.names or batch.schema.types != expected.types:
        raise DataError(
            f"emitted columns [{_columns(batch.schema)}], but its output schema declares [{_columns(expected)}]"
        )
    return pa.RecordBatch.from_arrays(batch.columns, schema=expected)


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema)
