"""`SourceNode`: a source in a thread of its own, feeding a bounded queue."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from arroyo_core.api import SourceCollector, SourceFinishType, SourceOperator, Watermark
from arroyo_core.errors import OperatorError
from arroyo_core.runtime.boundary import Boundary
from arroyo_core.runtime.chain import conform
from arroyo_core.runtime.context import RuntimeSourceContext
from arroyo_core.runtime.slicing import cut

#: Batches that wait between a source and the operators behind it.
QUEUE_BATCHES = 4
#: Larger ones are cut, so that what waits there, and what operators make of it, is bounded by bytes as well.
SOURCE_BATCH_BYTES = 16 << 20
_POLL_S = 0.1
#: How long a source gets to end when its task is over.
GRACE_S = 1.0


@dataclass(frozen=True, slots=True)
class SourceEvent:
    """What a source thread tells the task: rows, a watermark, its end or its failure."""

    node: SourceNode
    batch: pa.RecordBatch | None = None
    watermark: Watermark | None = None
    finish_type: SourceFinishType | None = None
    error: OperatorError | None = None


SourceQueue = queue.Queue[SourceEvent]


def source_queue(source_count: int) -> SourceQueue:
    return queue.Queue(QUEUE_BATCHES * source_count)


class SourceNode:
    """Runs one source subtask for one epoch."""

    def __init__(
        self,
        source: SourceOperator,
        ctx: RuntimeSourceContext,
        boundary: Boundary,
        *,
        is_started: bool = False,
        lives_on: bool = False,
    ) -> None:
        """`is_started` says that it has run in an earlier epoch, `lives_on` that it goes on in the next one."""
        self.source = source
        self.ctx = ctx
        self._is_started = is_started
        self._lives_on = lives_on
        self._boundary = boundary
        self.finish_type: SourceFinishType | None = None
        self._thread: threading.Thread | None = None

    def on_start(self) -> None:
        if not self._is_started:
            with self._boundary:
                self.source.on_start(self.ctx)

    def start(self, events: SourceQueue) -> None:
        name = f"{self.ctx.task_info.operator_id}-{self.ctx.task_info.task_index}"
        self._thread = threading.Thread(target=self._run, args=(events,), name=name, daemon=True)
        self._thread.start()

    def end_gracefully(self) -> None:
        """The job stops with this epoch, which was not known yet when the source ended it: now its life ends, too."""
        if self.finish_type is SourceFinishType.CHECKPOINTED:
            self.finish_type = SourceFinishType.GRACEFUL
            with self._boundary:
                self.source.on_close(self.ctx)

    def stop(self, grace_s: float) -> None:
        """Called when the task is over, in whatever way: the source is asked to end, and waited for a while.

        One that waits for something else cannot be ended. It is left behind: its rows go nowhere, and what has been
        found wrong with the task meanwhile is told, rather than kept until the source comes back.
        """
        self.ctx.cancel()
        if self._thread is not None:
            self._thread.join(grace_s)
            if self._thread.is_alive():
                _left_behind.append(self._thread)

    def _run(self, events: SourceQueue) -> None:
        collector = QueueCollector(self, events)
        self.ctx.start_clock()
        goes_on = False
        try:
            try:
                with self._boundary:
                    finish_type = self.source.run(self.ctx, collector)
                goes_on = self._lives_on and finish_type is SourceFinishType.CHECKPOINTED
            finally:
                # `run` was charged as a whole.
                self.ctx.metrics.busy_ns -= self.ctx.waited_ns
                if not goes_on:
                    with self._boundary:
                        self.source.on_close(self.ctx)
        except OperatorError as error:
            collector.put(SourceEvent(self, error=error))
        except _CancelledError:
            return
        except BaseException as error:
            # A source that calls sys.exit must not leave the task waiting for ever.
            failure = RuntimeError(f"the source ended with {type(error).__name__}: {error}")
            failure.__traceback__ = error.__traceback__
            collector.put(SourceEvent(self, error=self._boundary.name(failure)))
        else:
            self.finish_type = SourceFinishType(finish_type)
            collector.put(SourceEvent(self, finish_type=self.finish_type))


#: Threads of sources whose tasks are over.
_left_behind: list[threading.Thread] = []


def stop_sources(sources: Iterable[SourceNode]) -> None:
    """Stop all of them, and wait for them together."""
    sources = list(sources)
    for source in sources:
        source.ctx.cancel()
    until_s = time.monotonic() + GRACE_S
    for source in sources:
        source.stop(max(0.0, until_s - time.monotonic()))


def has_left_behind() -> bool:
    """Whether a source still runs in this process whose task is over: no other task should get the process."""
    _left_behind[:] = [thread for thread in _left_behind if thread.is_alive()]
    return bool(_left_behind)


class _CancelledError(BaseException):
    """Unwinds a source whose task is gone; not an Exception, so that no source catches it by accident."""


class QueueCollector(SourceCollector):
    """Hands a source's rows to the task, and waits while it is behind."""

    def __init__(self, node: SourceNode, events: SourceQueue) -> None:
        self._node = node
        self._events = events

    def collect(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows == 0:
            return
        ctx = self._node.ctx
        for part in cut(conform(batch, ctx.output_schema), SOURCE_BATCH_BYTES):
            ctx.metrics.send(part)
            ctx.spend(part)
            self._hand_over(SourceEvent(self._node, batch=part))

    def broadcast_watermark(self, watermark: Watermark) -> None:
        self._node.ctx.receive(watermark)
        self._hand_over(SourceEvent(self._node, watermark=watermark))

    def put(self, event: SourceEvent) -> bool:
        """Whether the task took it; it did not if it is gone."""
        while not self._node.ctx.is_cancelled:
            try:
                self._events.put(event, timeout=_POLL_S)
            except queue.Full:
                continue
            return True
        return False

    def _hand_over(self, event: SourceEvent) -> None:
        since_ns = time.perf_counter_ns()
        if not self.put(event):
            raise _CancelledError
        self._node.ctx.waited_ns += time.perf_counter_ns() - since_ns
