"""What `arroyo run` shows while a job runs, and at its end."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable, Mapping
from enum import StrEnum
from types import TracebackType
from typing import Self, TextIO

from arroyo_core.cli.formats import format_lag, format_size, format_time
from arroyo_core.cli.tables import print_rows
from arroyo_core.cli.terminal import is_terminal
from arroyo_core.pipeline.plan import Plan
from arroyo_core.runtime.metrics import OperatorMetrics
from arroyo_core.runtime.results import EpochResult, JobResult

#: A warning that is given epoch after epoch is shown again after so long.
REPEAT_S = 60.0


class ProgressKind(StrEnum):
    """How a run is shown; the values of `--progress`."""

    LIVE = "live"
    PLAIN = "plain"
    NONE = "none"


class Progress:
    """Shows warnings of operators, and nothing else: each once, and again, as it is then, while it lasts.

    All text for people goes through `write`, so that it does not end up within what a subclass shows.
    """

    def __init__(self, out: TextIO | None = None, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.out = out or sys.stderr
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
                    self.write(f"warning: {operator_id}: {warning}\n")

    def on_stop_requested(self, text: str) -> None:
        """Called by a signal handler, so that it must not touch what the signal may have come in the middle of."""
        os.write(self.out.fileno(), f"\n{text}\n".encode())

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
            self.write(f"{job.job_id}: going on after epoch {job.resumed_from}\n")

    def on_epoch(self, result: EpochResult, job: JobResult) -> None:
        self.write(f"{epoch_line(result)}\n")
        self.flush()
        super().on_epoch(result, job)


def choose_progress(*, is_json: bool, out: TextIO, data: TextIO, environment: Mapping[str, str]) -> ProgressKind:
    """What to show where nobody said: a live view on a terminal, lines elsewhere, nothing beside JSON.

    Nor is there a live view if `data` goes into a pipe: whoever reads it is likely to write to the same terminal.
    """
    if is_json:
        return ProgressKind.NONE
    return ProgressKind.LIVE if is_terminal(out, environment) and not _is_pipe(data) else ProgressKind.PLAIN


def _is_pipe(stream: TextIO) -> bool:
    try:
        return stat.S_ISFIFO(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):
        return False


def epoch_line(result: EpochResult) -> str:
    """An epoch in one line: rows, time, how far event time is, and what its checkpoint took."""
    rate = result.source_rows / result.duration_s if result.duration_s else 0.0
    line = (
        f"epoch {result.epoch:>4}  {result.source_rows:>13,} rows in  {result.duration_s:>6.2f} s  "
        f"{rate:>12,.0f} rows/s  checkpoint {format_size(result.checkpoint_bytes):>10} in {result.checkpoint_s:.2f} s"
    )
    if result.backlog:
        line += f"  {result.backlog:,} rows behind"
    if result.watermark_us is not None:
        line += f"  watermark {format_time(result.watermark_us)} (lag {format_lag(result.watermark_us)})"
    return line


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
    columns = ("node", "operator", "rows in", "rows out", "busy", "")
    rows = [_summary_row(plan, name, metrics) for name, metrics in job.operators.items()]
    print_rows(columns, rows, out, right=("rows in", "rows out", "busy"))


def _summary_row(plan: Plan, name: str, metrics: OperatorMetrics) -> tuple[str, str, str, str, str, str]:
    counters = ", ".join(f"{key} {value:,}" for key, value in metrics.counters.items())
    rows_in = f"{metrics.rows_received:,}" if plan.inputs_of(name) else ""
    rows_out = f"{metrics.rows_sent:,}" if plan.outputs_of(name) else ""
    return (name, plan.nodes[name].operator, rows_in, rows_out, f"{metrics.busy_ns / 1e9:.2f} s", counters)
