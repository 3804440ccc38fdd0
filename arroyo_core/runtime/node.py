"""`OperatorNode`: one subtask of a chain, with its inputs and outputs, for one epoch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from arroyo_core.api import END_OF_TIME_US, CheckpointBarrier, SignalMessage, SourceFinishType, Watermark
from arroyo_core.pipeline.plan import Chain
from arroyo_core.proto import exchange_pb2 as pb
from arroyo_core.runtime.carry import levels_message
from arroyo_core.runtime.chain import ChainedOperator
from arroyo_core.runtime.channels import received_frames, sent_frames
from arroyo_core.runtime.context import RuntimeContext
from arroyo_core.runtime.exchange import EdgeSender, Receiver, decode_watermark
from arroyo_core.runtime.frames import Frame, FrameKind, decode_batch
from arroyo_core.runtime.request import EpochRequest
from arroyo_core.runtime.sources import SourceNode
from arroyo_core.runtime.tables import OperatorTables
from arroyo_core.runtime.watermarks import Channel, Level, WatermarkHolder

_FINAL_OF_SOURCE = {
    SourceFinishType.FINAL: SignalMessage.END_OF_DATA,
    SourceFinishType.GRACEFUL: SignalMessage.STOP,
    SourceFinishType.IMMEDIATE: SignalMessage.STOP,
    SourceFinishType.CHECKPOINTED: None,
}


class LocalEdge:
    """A forward edge between two chains of one wave: no exchange, just a call."""

    def __init__(self, target: OperatorNode, *, input: int, sender: int, output: str | None = None) -> None:
        self.output = output
        self._target = target
        self._channel = (input, sender)

    def send(self, batch: pa.RecordBatch) -> None:
        self._target.receive_batch(self._channel[0], batch)

    def send_watermark(self, watermark: Watermark) -> None:
        self._target.receive_watermark(self._channel, watermark)

    def send_final(self, final: SignalMessage) -> None:
        self._target.receive_final(self._channel, final)

    def send_barrier(self) -> None:
        self._target.receive_barrier(self._channel)


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderSlot:
    """An edge into a later wave, and where it leads."""

    sender: EdgeSender
    chain: int
    input: int
    output: str | None = None


class OperatorNode:
    """Wraps a `ChainedOperator`, and the `SourceNode` at its head if there is one."""

    def __init__(
        self,
        chain: Chain,
        subtask: int,
        attempt: int,
        *,
        source: SourceNode | None,
        chained: ChainedOperator,
        tables: Sequence[OperatorTables],
        channels: Sequence[Channel],
        receiver: Receiver,
        input_schemas: Sequence[pa.Schema],
        local_edges: Sequence[LocalEdge],
        senders: Sequence[SenderSlot],
        channel_levels: Mapping[Channel, Level],
    ) -> None:
        """`channel_levels` are what the channels had come to at the end of the last epoch."""
        self.chain = chain
        self.subtask = subtask
        self.source = source
        self.chained = chained
        self._attempt = attempt
        self._tables = tables
        self._receiver = receiver
        self._input_schemas = input_schemas
        self._local_edges = local_edges
        self._senders = senders
        self._channels = channels
        self._ended: dict[Channel, SignalMessage] = {}
        merged = chained.slots[0].ctx.levels.input if source is None else Level()
        self._watermarks = WatermarkHolder(channels, restored=channel_levels, merged=merged)

    def on_start(self) -> None:
        if self.source is not None:
            self.source.on_start()
        self.chained.on_start()

    def restate_watermarks(self) -> None:
        """Make known what senders had sent before this epoch, where the pipeline has changed; after all `on_start`."""
        if self.source is None:
            self._tell(self._watermarks.restate())
        self.chained.restate_watermarks(None if self.source is None else self.source.ctx.levels.output)

    def go_on(self, request: EpochRequest, channels: Mapping[Channel, Level]) -> None:
        """The driver has asked for the epoch, which has begun already: take what was not known before.

        `channels` are what the senders had come to when it began.
        """
        for tables, ctx in zip(self._tables, self.contexts(), strict=True):
            tables.go_on(request.checkpoints.get(ctx.task_info.operator_id))
        self.start_compaction(request.epoch)
        self._watermarks.learn(channels)
        if self.source is not None and request.stop is not None:
            self.source.ctx.end_early(request.stop_request or request.barrier)

    @property
    def channels(self) -> Mapping[Channel, Level]:
        """What the channels have come to."""
        return self._watermarks.channels

    @property
    def may_begin_early(self) -> bool:
        """Whether rows of the next epoch may come before anybody knows what this one came to; asked at its end."""
        return self.goes_on and not any(tables.waits_for_others for tables in self._tables)

    def contexts(self) -> list[RuntimeContext]:
        """Of its operators, in the order of the chain."""
        source: list[RuntimeContext] = [self.source.ctx] if self.source else []
        return source + [slot.ctx for slot in self.chained.slots]

    @property
    def goes_on(self) -> bool:
        """Whether more is to come for those of its operators that live on; known at the end of an epoch."""
        return self._final() is None

    def start_compaction(self, epoch: int) -> None:
        """Called after `on_start`, where tasks may have threads."""
        for tables in self._tables:
            tables.start_compaction(epoch)

    def flush(self) -> None:
        """Send on what waits for more rows."""
        for slot in self._senders:
            slot.sender.flush()

    def receive(self, frame: Frame) -> None:
        """Take a frame from the exchange."""
        self._receiver.accept(frame)
        channel = (frame.input, frame.sender)
        match frame.kind:
            case FrameKind.DATA:
                self.receive_batch(frame.input, decode_batch(frame.payload, self._input_schemas[frame.input]))
            case FrameKind.WATERMARK:
                self.receive_watermark(channel, decode_watermark(frame.payload))
            case FrameKind.BARRIER:
                self.receive_barrier(channel)
            case FrameKind.END_OF_DATA:
                self.receive_final(channel, SignalMessage.END_OF_DATA)
            case FrameKind.STOP:
                self.receive_final(channel, SignalMessage.STOP)

    def receive_batch(self, index: int, batch: pa.RecordBatch) -> None:
        self.chained.process_batch(batch, index=index, total_inputs=len(self._input_schemas))

    def receive_watermark(self, channel: Channel, watermark: Watermark) -> None:
        self._tell(self._watermarks.update(channel, watermark))

    def receive_barrier(self, channel: Channel) -> None:
        self._tell(self._watermarks.end_epoch(channel))

    def receive_source_watermark(self, watermark: Watermark) -> None:
        """Take a watermark of the source at the head."""
        assert self.source is not None
        self._tell(self.source.ctx.send(watermark))

    def receive_final(self, channel: Channel, final: SignalMessage) -> None:
        self._ended[channel] = final
        if final is SignalMessage.END_OF_DATA:
            self.receive_watermark(channel, Watermark.event_time(END_OF_TIME_US))

    def _tell(self, watermarks: Sequence[Watermark]) -> None:
        for watermark in watermarks:
            self.chained.handle_watermark(watermark)

    def finish_source(self, finish_type: SourceFinishType) -> None:
        """The source returned; at the end of its data all windows behind it flush."""
        if finish_type is SourceFinishType.FINAL:
            self.receive_source_watermark(Watermark.event_time(END_OF_TIME_US))

    def finish(self, barrier: CheckpointBarrier) -> Callable[[], pb.ChainReport]:
        """Everything of this epoch has come: close if the end has come too, checkpoint, and send the barrier.

        What it returns is called once, and waits until the state is stored; then it gives the report.
        """
        self._receiver.check_complete()
        final = self._final()
        if final is not None:
            final = self.chained.on_close(final)
        self.chained.handle_checkpoint(barrier)
        is_last = final is SignalMessage.END_OF_DATA
        checkpoints = [tables.begin_checkpoint(barrier, is_last=is_last) for tables in self._tables]
        if final is None:
            self.chained.on_close(None)
        report = self._report(final, self._send_end(final), barrier.epoch)

        def complete() -> pb.ChainReport:
            for item, checkpoint in zip(report.operators, checkpoints, strict=True):
                item.checkpoint = checkpoint()
            return report

        return complete

    def _final(self) -> SignalMessage | None:
        if self.source is not None:
            finish_type = self.source.finish_type
            return None if finish_type is None else _FINAL_OF_SOURCE[finish_type]
        if len(self._ended) < len(self._channels):
            return None
        is_end = all(final is SignalMessage.END_OF_DATA for final in self._ended.values())
        return SignalMessage.END_OF_DATA if is_end else SignalMessage.STOP

    def _send_end(self, final: SignalMessage | None) -> list[pb.SentFrames]:
        if final is not None:
            for edge in self._local_edges:
                edge.send_final(final)
        for edge in self._local_edges:
            edge.send_barrier()
        return [sent_frames(slot.sender.finish(final), chain=slot.chain, input=slot.input) for slot in self._senders]

    def _report(self, final: SignalMessage | None, sent: Sequence[pb.SentFrames], epoch: int) -> pb.ChainReport:
        """All but the checkpoints."""
        contexts = self.contexts()
        for ctx in contexts:
            ctx.is_closed = final is SignalMessage.END_OF_DATA
        if self.source is None:
            contexts[0].note_furthest(self._watermarks.merged.furthest_us)
        report = pb.ChainReport(
            chain=self.chain.id, subtask=self.subtask, attempt=self._attempt, epoch=epoch, sent=sent
        )
        report.operators.extend(_operator_report(ctx) for ctx in contexts)
        if self.source is not None and self.source.finish_type is not None:
            report.operators[0].finish_type = self.source.finish_type
        report.received.extend(received_frames(self._receiver.inboxes))
        return report


def _operator_report(ctx: RuntimeContext) -> pb.OperatorReport:
    metrics = ctx.metrics
    return pb.OperatorReport(
        operator_id=ctx.task_info.operator_id,
        metrics=metrics.values(),
        counters=metrics.counters,
        warnings=[pb.OperatorWarning(topic=topic, text=text) for topic, text in metrics.warnings.items()],
        levels=levels_message(ctx.levels),
        latest=metrics.latest.encode() if metrics.latest is not None else b"",
    )
