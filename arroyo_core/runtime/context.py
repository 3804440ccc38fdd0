"""The contexts that the runtime gives to operators and sources."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from arroyo_core.api import (
    ArroyoSchema,
    CheckpointBarrier,
    Clock,
    CommitToken,
    ControlMessage,
    GivenRows,
    OperatorContext,
    SourceContext,
    StateTables,
    StopRequest,
    TaskInfo,
    Watermark,
)
from arroyo_core.runtime.carry import NEW, OperatorLevels
from arroyo_core.runtime.metrics import OperatorMetrics
from arroyo_core.runtime.showing import Show, Shown
from arroyo_core.runtime.stop import StopFile

#: A source that waits looks up at least this often.
_LOOK_S = 0.1


class RuntimeContext(OperatorContext):
    """Serves one operator of one subtask, one epoch after the other."""

    def __init__(
        self,
        *,
        task_info: TaskInfo,
        table_manager: StateTables,
        clock: Clock,
        input_schemas: Sequence[ArroyoSchema],
        output_schema: ArroyoSchema,
        token: CommitToken,
        metrics: OperatorMetrics,
        side_schemas: Mapping[str, ArroyoSchema] | None = None,
        levels: OperatorLevels = NEW,
        redact: Callable[[str], str] = str,
        show: Show | None = None,
    ) -> None:
        """`levels` are those at the end of the last epoch; `redact` hides the values of the config's secret fields.

        `show` brings text to the driver, where there is a way before the commit.
        """
        self.task_info = task_info
        self.table_manager = table_manager
        self.input_schemas = input_schemas
        self.output_schema = output_schema
        self.side_schemas = side_schemas or {}
        self._redact = redact
        self._show = show
        self.begin_epoch(token, clock=clock, metrics=metrics, levels=levels)

    def begin_epoch(
        self, token: CommitToken, *, clock: Clock, metrics: OperatorMetrics, levels: OperatorLevels
    ) -> None:
        """Serve this epoch from now on."""
        self.token = token
        self.epoch = token.epoch
        self.clock = clock
        self.metrics = metrics
        self._input = levels.input
        self._output = levels.output
        #: The end has been announced to the operator.
        self.is_closed = levels.is_closed

    @property
    def levels(self) -> OperatorLevels:
        """What the next epoch begins with."""
        return OperatorLevels(self._input, self._output, self.is_closed)

    def watermark(self) -> Watermark | None:
        return self._input.watermark

    def last_present_watermark(self) -> int | None:
        return self._input.event_time_us

    def receive(self, watermark: Watermark) -> Sequence[Watermark]:
        """The watermark as this operator is to be told about it; nothing if it changes nothing."""
        before, self._input = self._input, self._input.after(watermark)
        return self._input.since(before)

    def send(self, watermark: Watermark) -> Sequence[Watermark]:
        """The watermark as it leaves this operator; nothing if it changes nothing."""
        before, self._output = self._output, self._output.after(watermark)
        return self._output.since(before)

    def note_furthest(self, furthest_us: int | None) -> None:
        """How far any of the senders has come, for the next epoch."""
        self._input = self._input.with_furthest(furthest_us)

    def count(self, name: str, amount: int = 1) -> None:
        self.metrics.count(name, amount)

    def warn(self, message: str, *, topic: str | None = None) -> None:
        self.metrics.warn(self.redact(message), topic=None if topic is None else self.redact(topic))

    def show(self, text: str, *, heading: str = "") -> bool:
        if self._show is None:
            return False
        self._show(Shown(self.task_info.operator_id, heading, text))
        return True

    def redact(self, text: str) -> str:
        return self._redact(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What one source subtask may take in one epoch; None is no limit."""

    interval_ms: int | None = None
    rows: int | None = None
    bytes: int | None = None


class RuntimeSourceContext(RuntimeContext, SourceContext):
    """Hands a source its barrier when the budget is spent."""

    #: What `control` gives from now on; set once.
    _message: ControlMessage | None = None
    #: What comes with the run, in this epoch.
    given_rows: GivenRows | None = None

    def limit(
        self,
        barrier: CheckpointBarrier,
        budget: Budget,
        *,
        stop_file: StopFile | None = None,
        stop: StopRequest | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Set the epoch's budget; with `stop`, it is spent already."""
        self._message = stop
        self._stop_file = stop_file
        self._next_look = 0.0
        self._barrier = barrier
        self._budget = budget
        self._monotonic = monotonic
        self._started = monotonic()
        self._rows = 0
        self._bytes = 0
        #: How long the source has waited: for rows of its own, and for the task to take them.
        self.waited_ns = 0
        #: How often the source asked whether to end: one that does is alive, if it has rows or not.
        self.looks = 0
        self._cancelled = threading.Event()

    def start_clock(self) -> None:
        """Called right before `run`: what was done until then is not the source's time."""
        self._started = self._monotonic()

    def spend(self, batch: pa.RecordBatch) -> None:
        self._rows += batch.num_rows
        self._bytes += batch.nbytes

    def end_early(self, message: ControlMessage) -> None:
        """The budget is spent, and this is what the source is told, unless it has been told something already."""
        if self._message is None:
            self._message = message

    def cancel(self) -> None:
        """The task is going away: the source is asked to stop at once, and its rows go nowhere."""
        self._cancelled.set()

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled.is_set()

    def control(self) -> ControlMessage | None:
        self.looks += 1
        if self._message is None:
            if self._cancelled.is_set():
                self._message = StopRequest(is_graceful=False)
            elif self._is_spent() or self._is_stop_requested():
                self._message = self._barrier
        return self._message

    def given(self) -> GivenRows | None:
        return self.given_rows

    def rows_left(self) -> int | None:
        return None if self._budget.rows is None else max(0, self._budget.rows - self._rows)

    def report_backlog(self, rows: int) -> None:
        self.metrics.backlog = rows

    def wait(self, seconds: float) -> ControlMessage | None:
        since_ns = time.perf_counter_ns()
        until = self._monotonic() + seconds
        while (message := self.control()) is None and (left := until - self._monotonic()) > 0:
            self._cancelled.wait(min(left, _LOOK_S, self._seconds_left() or _LOOK_S))
        self.waited_ns += time.perf_counter_ns() - since_ns
        return message

    def _is_spent(self) -> bool:
        budget = self._budget
        left = self._seconds_left()
        return (
            (budget.rows is not None and self._rows >= budget.rows)
            or (budget.bytes is not None and self._bytes >= budget.bytes)
            or (left is not None and left <= 0)
        )

    def _is_stop_requested(self) -> bool:
        now = self._monotonic()
        if self._stop_file is None or now < self._next_look:
            return False
        self._next_look = now + self._stop_file.look_s
        return self._stop_file.is_there()

    def _seconds_left(self) -> float | None:
        if self._budget.interval_ms is None:
            return None
        return self._budget.interval_ms / 1000 - (self._monotonic() - self._started)
