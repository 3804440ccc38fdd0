"""Runs one partition of one wave: frames in, frames out."""

from __future__ import annotations

import queue
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext

import pyarrow as pa

from arroyo_core.api import SourceFinishType
from arroyo_core.errors import ArroyoError, OperatorError, RetryHint, error_domain, retry_hint
from arroyo_core.pipeline.plan import Plan
from arroyo_core.proto import exchange_pb2 as pb
from arroyo_core.runtime.assembly import WaveAssembly, channel_levels
from arroyo_core.runtime.confirmation import RunAbandonedError
from arroyo_core.runtime.context import RuntimeContext
from arroyo_core.runtime.frames import DRIVER_CHAIN, Frame, FrameKind, FrameWriter
from arroyo_core.runtime.heartbeats import Beat, Heart
from arroyo_core.runtime.node import OperatorNode
from arroyo_core.runtime.request import EpochRequest, TaskEnvironment
from arroyo_core.runtime.running import counted_so_far
from arroyo_core.runtime.sources import SourceEvent, SourceNode, SourceQueue, source_queue, stop_sources
from arroyo_core.state import get_storage_provider, paths

#: How often a task whose operators ask for no ticks looks up from waiting.
_IDLE_WAIT_S = 1.0
#: How often one of a worker that lives on looks whether its run was given up.
_LIVE_WAIT_S = 0.05
#: What comes along a channel behind its last row.
_LAST_KINDS = (FrameKind.END_OF_DATA, FrameKind.STOP, FrameKind.BARRIER)


def run_wave(
    plan: Plan,
    wave: int,
    request: EpochRequest,
    environment: TaskEnvironment,
    frames: Iterable[Frame | None],
) -> Iterator[Frame]:
    """Run subtask `environment.partition` of every chain of the wave on the frames for it.

    Where frames come while senders run, None says that there is none for now.

    An error that a retry cannot fix is reported in band, and the task succeeds: whoever
    schedules tasks would only run into it again. Any other error is raised.

    No frames come to the first wave. Where it fails they are not even looked at: a source may still be blocked, and
    whoever runs the task can tell by what is left unread that the process must end.
    """
    # Where the task fails, it goes on where it was.
    frames = iter(frames)
    try:
        yield from _WaveTask(plan, wave, request, environment).run(frames)
    except Exception as error:
        if retry_hint(error) is RetryHint.WITH_BACKOFF and not environment.is_last_attempt:
            raise
        yield _report_error(error, plan, wave, request, environment)
        if wave > 0:
            # Reports above all: another one may tell the first cause.
            own = {chain.id for chain in plan.wave_chains(wave)}
            yield from (frame for frame in frames if frame is not None and frame.chain not in own)


class _WaveTask:
    def __init__(self, plan: Plan, wave: int, request: EpochRequest, environment: TaskEnvironment) -> None:
        self._request = request
        self._environment = environment
        self._plan = plan
        self._wave = wave
        self._abandoned = environment.abandoned
        #: None once the driver has asked for the epoch.
        self._confirmation = environment.confirmation
        self._writer = FrameWriter(near=environment.partition if self._is_live else None)
        assembly = WaveAssembly(plan, wave, request, environment, self._writer)
        self._stopwatch = assembly.stopwatch
        self._nodes = assembly.build()
        self._residents = assembly.residents
        self._ticker = Ticker(self._nodes)
        #: Rises with what no operator counts.
        self._steps = 0
        self._is_ending = False

    @property
    def _is_live(self) -> bool:
        return self._abandoned is not None

    def run(self, frames: Iterable[Frame | None]) -> Iterator[Frame]:
        try:
            with self._heart():
                yield from self._run(frames)
        except (RunAbandonedError, GeneratorExit):
            self._close_residents()
            raise

    def _run(self, frames: Iterable[Frame | None]) -> Iterator[Frame]:
        for node in self._nodes:
            node.on_start()
            if self._environment.is_concurrent and self._confirmation is None:
                node.start_compaction(self._request.epoch)
        for node in self._nodes:
            node.restate_watermarks()
        yield from self._run_sources()
        yield from self._run_frames(frames)
        self._confirm()
        if self._environment.confirmation is not None and self._request.stop_request is not None:
            for source in self._sources():
                source.end_gracefully()
        self._is_ending = True
        # Topological order: what a chain emits at its barrier reaches its consumers before theirs.
        reports = []
        for node in self._nodes:
            self._steps += 1
            reports.append(node.finish(self._request.barrier))
            yield from self._writer.drain()
        self._keep_residents()
        # The waves behind this one, and the next epoch, do not wait for storage.
        for complete in reports:
            self._steps += 1
            yield _report_frame(complete(), self._environment)

    def _confirm(self) -> None:
        """Wait until the driver asks for the epoch, where it has begun before that, and take what it says."""
        if self._confirmation is None:
            return
        self._request = self._confirmation.wait()
        self._confirmation = None
        for node in self._nodes:
            node.go_on(self._request, channel_levels(self._plan, node.chain, node.subtask, self._request))

    def _look_for_confirmation(self) -> None:
        if self._confirmation is not None and self._confirmation.is_here:
            self._confirm()

    def _keep_residents(self) -> None:
        if self._environment.residents is None:
            return
        going_on = {node_id for node in self._nodes if node.goes_on for node_id in node.chain.nodes}
        found = {node_id: resident for node_id, resident in self._residents.items() if node_id in going_on}
        channels = {node.chain.id: node.channels for node in self._nodes}
        self._environment.residents.keep(found, self._request.token, channels)
        self._residents = {}
        all_nodes = {node_id for node in self._nodes for node_id in node.chain.nodes}
        if (
            self._environment.on_barrier is not None
            and found.keys() == all_nodes
            and self._request.stop is None
            and all(node.may_begin_early for node in self._nodes)
        ):
            self._environment.on_barrier()

    def _close_residents(self) -> None:
        """Those that live on would be closed with the worker, if they were not in use here."""
        ended = [source.ctx for source in self._sources() if source.finish_type is SourceFinishType.CHECKPOINTED]
        for resident in self._residents.values():
            # A source that was interrupted has closed itself.
            if resident.constructed.source is None or resident.ctx in ended:
                resident.close()

    def _sources(self) -> list[SourceNode]:
        return [node.source for node in self._nodes if node.source is not None]

    def beat(self) -> Beat:
        """Where the task is; called from another thread."""
        contexts = list(self._contexts())
        rows = sum(ctx.metrics.rows_received + ctx.metrics.rows_sent for ctx in contexts)
        looks = sum(source.ctx.looks for source in self._sources())
        return Beat(
            epoch=self._request.epoch,
            wave=self._wave,
            subtask=self._environment.partition,
            attempt=self._environment.attempt,
            count=rows + looks + self._steps,
            rows=rows,
            place=self._place(contexts),
        )

    def _place(self, contexts: Iterable[RuntimeContext]) -> str:
        running = self._stopwatch.current()
        for ctx in contexts:
            if ctx.metrics is running:
                return f"in operator {ctx.task_info.operator_id!r}"
        if self._is_ending:
            return "writing its checkpoint"
        waited = [source.ctx.task_info.operator_id for source in self._sources() if source.finish_type is None]
        return f"waiting for source {', '.join(map(repr, waited))}" if waited else "reading rows of the wave before"

    def _contexts(self) -> Iterator[RuntimeContext]:
        for node in self._nodes:
            yield from node.contexts()

    def counted(self) -> list[pb.ChainReport]:
        """What its chains have counted so far; called from another thread."""
        return counted_so_far(self._nodes, self._request.epoch)

    def _heart(self) -> AbstractContextManager[None]:
        request = self._request
        if self._environment.watch is not None:
            return self._environment.watch(self)
        if request.beat_ms is None or not self._environment.is_concurrent:
            return nullcontext()
        subtask = self._environment.partition
        path = paths.heartbeat(self._plan.job_id, request.generation, self._wave, subtask)
        return Heart(self.beat, get_storage_provider(request.storage_url), path, beat_s=request.beat_ms / 1000)

    def _run_sources(self) -> Iterator[Frame]:
        sources = {node.source: node for node in self._nodes if node.source is not None}
        if not sources:
            return
        events = source_queue(len(sources))
        for source in sources:
            source.start(events)
        try:
            running = len(sources)
            while running:
                event = self._next_event(events)
                if event is not None:
                    running -= self._handle_event(sources[event.node], event)
                yield from self._writer.drain()
        finally:
            stop_sources(sources)

    def _next_event(self, events: SourceQueue) -> SourceEvent | None:
        self._look_for_confirmation()
        self._ticker.tick_if_due()
        if self._abandoned is None:
            return _get(events, self._ticker.wait_s())
        if self._abandoned.is_set():
            raise RunAbandonedError
        event = _get(events, 0)
        if event is None:
            # There is nothing else to do, and somebody who waits for these rows.
            self._flush()
            if not self._writer.is_empty:
                # Those frames go first: nobody waits for a source with them in hand.
                return None
            event = _get(events, min(_LIVE_WAIT_S, self._ticker.wait_s()))
        return event

    def _flush(self) -> None:
        for node in self._nodes:
            node.flush()

    def _handle_event(self, node: OperatorNode, event: SourceEvent) -> bool:
        """Whether this was the source's last event."""
        if event.error is not None:
            raise event.error
        if event.batch is not None:
            node.chained.process_batch(event.batch)
        elif event.watermark is not None:
            node.receive_source_watermark(event.watermark)
        elif event.finish_type is not None:
            node.finish_source(event.finish_type)
            return True
        return False

    def _run_frames(self, frames: Iterable[Frame | None]) -> Iterator[Frame]:
        nodes = {node.chain.id: node for node in self._nodes}
        for frame in frames:
            self._look_for_confirmation()
            if frame is None:
                self._ticker.tick_if_due()
                self._flush()
                yield from self._writer.drain()
                continue
            self._steps += 1
            if frame.chain in nodes:
                if frame.kind in _LAST_KINDS:
                    self._confirm()
                self._ticker.tick_if_due()
                nodes[frame.chain].receive(frame)
                yield from self._writer.drain()
            else:
                yield frame


def _get(events: SourceQueue, timeout_s: float) -> SourceEvent | None:
    try:
        return events.get(block=timeout_s > 0, timeout=timeout_s or None)
    except queue.Empty:
        return None


class Ticker:
    """Calls `handle_tick` on each chain that asks for it, at its own interval; missed ticks are skipped."""

    def __init__(self, nodes: Iterable[OperatorNode], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        now = monotonic()
        self._due = {node: now + interval for node in nodes if (interval := node.chained.tick_interval_s()) is not None}
        self._counts = dict.fromkeys(self._due, 0)

    def tick_if_due(self) -> None:
        if not self._due:
            return
        now = self._monotonic()
        for node, due in self._due.items():
            if now >= due:
                node.chained.handle_tick(self._counts[node])
                self._counts[node] += 1
                self._due[node] = now + (node.chained.tick_interval_s() or 0)

    def wait_s(self) -> float:
        """How long to wait for input before a tick may be due."""
        if not self._due:
            return _IDLE_WAIT_S
        return min(_IDLE_WAIT_S, max(0.0, min(self._due.values()) - self._monotonic()))


def _report_error(
    error: Exception, plan: Plan, wave: int, request: EpochRequest, environment: TaskEnvironment
) -> Frame:
    chain = plan.wave_chains(wave)[0]
    report = pb.ChainReport(
        chain=plan.chain_of(error.operator_id).id if isinstance(error, OperatorError) else chain.id,
        subtask=environment.partition,
        attempt=environment.attempt,
        epoch=request.epoch,
        error=pb.ErrorReport(
            operator_id=error.operator_id if isinstance(error, OperatorError) else "",
            message=error.message if isinstance(error, ArroyoError) else f"{type(error).__name__}: {error}",
            traceback=error.traceback if isinstance(error, OperatorError) else traceback.format_exc(),
            domain=error_domain(error),
            retry=retry_hint(error),
            kind=error.cause_kind if isinstance(error, OperatorError) else type(error).__name__,
        ),
    )
    return _report_frame(report, environment)


def _report_frame(report: pb.ChainReport, environment: TaskEnvironment) -> Frame:
    return Frame(
        environment.partition,
        DRIVER_CHAIN,
        0,
        environment.partition,
        environment.attempt,
        0,
        FrameKind.REPORT,
        pa.py_buffer(report.SerializeToString()),
    )
