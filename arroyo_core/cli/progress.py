"""What `arroyo run` shows while a job runs, and at its end."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from types import TracebackType
from typing import Any, Self, TextIO

from arroyo_core.cli.formats import format_lag, format_size, format_time
from arroyo_core.cli.log_lines import WARNING, LogLines
from arroyo_core.cli.tables import print_rows
from arroyo_core.cli.terminal import is_terminal
from arroyo_core.pipeline.plan import Plan
from arroyo_core.runtime.metric import json_values
from arroyo_core.runtime.metrics import OperatorMetrics
from arroyo_core.runtime.results import EpochResult, JobResult

#: A warning that is given epoch after epoch is shown again after so long.
REPEAT_S = 60.0
#: How often there is a line where one for each epoch would be too many.
BRIEF_S = 10.0


class ProgressKind(StrEnum):
    """How a run is shown; the values of `--progress`."""

    LIVE = "live"
    PLAIN = "plain"
    BRIEF = "brief"
    NONE = "none"


class Progress:
    """Shows warnings of operators, and nothing else: each once, and again, as it is then, while it lasts.

    All text for people goes through `write`, so that it does not end up within what a subclass shows.
    """

    def __init__(
        self,
        out: TextIO | None = None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        lines: LogLines | None = None,
    ) -> None:
        self.out = out or sys.stderr
        self.lines = lines or LogLines()
        self._monotonic = monotonic
        #: When each warning was shown last, by operator and topic.
        self._warned_s: dict[tuple[str, str], float] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    def on_start(self, job: JobResult) -> None:
        return

    def on_epoch(self, result: EpochResult, job: JobResult) -> None:
        now_s = self._monotonic()
        self._warned_s = {key: shown_s for key, shown_s in self._warned_s.items() if now_s - shown_s < REPEAT_S}
        for operator_id, metrics in result.operators.items():
            for topic, warning in metrics.warnings.items():
                if (operator_id, topic) not in self._warned_s:
                    self._warned_s[operator_id, topic] = now_s
                    self.write(self.lines.render(f"{operator_id}: {warning}", level=WARNING, node=operator_id))

    def on_stop_requested(self, text: str) -> None:
        """Called by a signal handler, so that it must not touch what the signal may have come in the middle of."""
        # Nobody may be reading.
        with contextlib.suppress(OSError):
            # A terminal shows the keys that were pressed.
            start = "\n" if self.out.isatty() else ""
            os.write(self.out.fileno(), f"{start}{self.lines.render(text)}".encode())

    def write(self, text: str) -> int:
        return self.out.write(text)

    def flush(self) -> None:
        self.out.flush()

    def shared(self, stream: TextIO) -> TextIO:
        """`stream`, or what to write to instead so that it does not end up within what is shown."""
        return stream


class PlainProgress(Progress):
    """A line for each epoch."""

    def on_start(self, job: JobResult) -> None:
        if job.resumed_from and not job.is_finished:
            self.write(self.lines.render(f"{job.job_id}: going on after epoch {job.resumed_from}", job=job.job_id))

    def on_epoch(self, result: EpochResult, job: JobResult) -> None:
        self.show([result], job)
        super().on_epoch(result, job)

    def show(self, results: Sequence[EpochResult], job: JobResult) -> None:
        """Write a line about some epochs."""
        fields = epochs_fields(results) if self.lines.is_json else {}
        self.write(self.lines.render(epochs_line(results), event="epochs", job=job.job_id, **fields))
        self.flush()


class BriefProgress(PlainProgress):
    """The first epoch, then a line in a while for all epochs since the last one, and those left at the end."""

    def __init__(
        self,
        out: TextIO | None = None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        lines: LogLines | None = None,
    ) -> None:
        super().__init__(out, monotonic=monotonic, lines=lines)
        self._held: list[EpochResult] = []
        self._shown_s: float | None = None
        self._job: JobResult | None = None

    def on_epoch(self, result: EpochResult, job: JobResult) -> None:
        self._job = job
        self._held.append(result)
        if self._shown_s is None or self._monotonic() - self._shown_s >= BRIEF_S or result.is_final:
            self._show_held()
        Progress.on_epoch(self, result, job)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._show_held()

    def _show_held(self) -> None:
        if self._held and self._job is not None:
            self.show(self._held, self._job)
            self._held = []
            self._shown_s = self._monotonic()


def choose_progress(*, is_json: bool, out: TextIO, data: TextIO, environment: Mapping[str, str]) -> ProgressKind:
    """What to show where nobody said: a live view on a terminal, some lines elsewhere, nothing beside JSON.

    Nor is there a live view if `data` goes into a pipe: whoever reads it is likely to write to the same terminal.
    """
    if is_json:
        return ProgressKind.NONE
    if not out.isatty():
        return ProgressKind.BRIEF
    return ProgressKind.LIVE if is_terminal(out, environment) and not _is_pipe(data) else ProgressKind.PLAIN


def _is_pipe(stream: TextIO) -> bool:
    try:
        return stat.S_ISFIFO(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):
        return False


def epochs_line(results: Sequence[EpochResult]) -> str:
    """Epochs in one line: rows, time, how far event time is, and what their checkpoints took."""
    first, last = results[0], results[-1]
    rows, duration_s = sum(result.source_rows for result in results), sum(result.duration_s for result in results)
    rate = rows / duration_s if duration_s else 0.0
    which = f"epoch {first.epoch:>4}" if len(results) == 1 else f"epochs {first.epoch:>4} to {last.epoch}"
    checkpoint_bytes = sum(result.checkpoint_bytes for result in results)
    line = (
        f"{which}  {rows:>13,} rows in  {duration_s:>6.2f} s  {rate:>12,.0f} rows/s  "
        f"checkpoint {format_size(checkpoint_bytes):>10} in {sum(result.checkpoint_s for result in results):.2f} s"
    )
    if last.backlog:
        line += f"  {last.backlog:,} rows behind"
    if last.watermark_us is not None:
        line += f"  watermark {format_time(last.watermark_us)} (lag {format_lag(last.watermark_us)})"
    return line


def epochs_fields(results: Sequence[EpochResult]) -> dict[str, Any]:
    """The same for tools: the numbers of the last epoch, with those that add up summed."""
    added = ("duration_s", "source_rows", "checkpoint_bytes", "checkpoint_s", "commit_s")
    sums = {name: round(sum(getattr(result, name) for result in results), 6) for name in added}
    return {"first_epoch": results[0].epoch, **results[-1].summary(), **sums}


def show_summary(plan: Plan, job: JobResult, out: TextIO, lines: LogLines) -> None:
    """What the run came to: a table for people, or a line for tools."""
    if not lines.is_json:
        print_summary(plan, job, out)
        return
    state = "finished" if job.is_finished else "stopped"
    out.write(lines.render(f"{job.job_id} {state}", event="end", job=job.job_id, outcome=state, **json_values(job)))
    out.flush()


def print_summary(plan: Plan, job: JobResult, out: TextIO) -> None:
    """A table of operators: rows in and out, time busy, counters."""
    if job.is_finished and not job.epochs:
        print(
            f"{job.job_id} finished in an earlier run, at epoch {job.resumed_from}; there is nothing left to do. "
            "To run it from the start again, add --fresh --force, or give it another name or checkpoint url.",
            file=out,
        )
        return
    state = "finished" if job.is_finished else "stopped"
    rate = job.source_rows / job.duration_s if job.duration_s else 0.0
    epochs = "1 epoch" if job.epochs == 1 else f"{job.epochs} epochs"
    print(
        f"\n{job.job_id} {state}: {epochs}, {job.source_rows:,} rows in, {job.duration_s:.1f} s, {rate:,.0f} rows/s\n",
        file=out,
    )
    plan = job.plan or plan
    columns = ("node", "operator", "rows in", "rows out", "busy", "")
    rows = [_summary_row(plan, name, metrics) for name, metrics in job.operators.items()]
    print_rows(columns, rows, out, right=("rows in", "rows out", "busy"))


def _summary_row(plan: Plan, name: str, metrics: OperatorMetrics) -> tuple[str, str, str, str, str, str]:
    counters = ", ".join(f"{key} {value:,}" for key, value in metrics.counters.items())
    rows_in = f"{metrics.rows_received:,}" if plan.inputs_of(name) else ""
    rows_out = f"{metrics.rows_sent:,}" if plan.outputs_of(name) else ""
    return (name, plan.nodes[name].operator, rows_in, rows_out, f"{metrics.busy_ns / 1e9:.2f} s", counters)
