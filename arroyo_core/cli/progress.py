"""What `arroyo run` shows while a job runs, and at its end."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass, field
from typing import TextIO

from arroyo_core.cli.formats import format_lag, format_size, format_time
from arroyo_core.graph.plan import Plan
from arroyo_core.runtime.metrics import OperatorMetrics
from arroyo_core.runtime.results import EpochResult, JobResult


@dataclass(slots=True)
class Progress:
    """Shows each epoch, and warnings of operators once each.

    A terminal has one line that changes, anything else a line per epoch. Other text for people goes
    through `write`, so that it does not end up within that line.
    """

    out: TextIO = field(default_factory=lambda: sys.stderr)
    _warned: set[str] = field(default_factory=set)
    #: A line is shown that the next epoch takes the place of.
    _is_open: bool = False

    def on_start(self, job: JobResult) -> None:
        if job.resumed_from and not job.is_finished:
            self.write(f"{job.job_id}: going on after epoch {job.resumed_from}\n")

    def on_epoch(self, result: EpochResult, job: JobResult) -> None:
        line = epoch_line(result)
        if self.out.isatty():
            self.out.write(f"\r\x1b[2K{line[: shutil.get_terminal_size().columns - 1]}")
            self._is_open = True
        else:
            self.out.write(f"{line}\n")
        self.out.flush()
        for operator_id, metrics in result.operators.items():
            for warning in metrics.warnings:
                if warning not in self._warned:
                    self._warned.add(warning)
                    self.write(f"warning: {operator_id}: {warning}\n")

    def write(self, text: str) -> int:
        self.end()
        self.out.write(text)
        return len(text)

    def flush(self) -> None:
        self.out.flush()

    def end(self) -> None:
        """Leave the line that is shown as it is."""
        if self._is_open:
            self._is_open = False
            self.out.write("\n")


def epoch_line(result: EpochResult) -> str:
    """An epoch in one line: rows, time, how far event time is, and what its checkpoint took."""
    rate = result.source_rows / result.duration_s if result.duration_s else 0.0
    line = (
        f"epoch {result.epoch:>4}  {result.source_rows:>13,} rows in  {result.duration_s:>6.2f} s  "
        f"{rate:>12,.0f} rows/s  checkpoint {format_size(result.checkpoint_bytes):>10} in {result.checkpoint_s:.2f} s"
    )
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
    rows = [("node", "operator", "rows in", "rows out", "busy", "")]
    rows += [_summary_row(plan, name, metrics) for name, metrics in job.operators.items()]
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    for row in rows:
        left = [row[column].ljust(widths[column]) for column in (0, 1)]
        right = [row[column].rjust(widths[column]) for column in (2, 3, 4)]
        print("  ".join([*left, *right, row[5]]).rstrip(), file=out)


def _summary_row(plan: Plan, name: str, metrics: OperatorMetrics) -> tuple[str, str, str, str, str, str]:
    counters = ", ".join(f"{key} {value:,}" for key, value in metrics.counters.items())
    rows_in = f"{metrics.rows_received:,}" if plan.inputs_of(name) else ""
    rows_out = f"{metrics.rows_sent:,}" if plan.outputs_of(name) else ""
    return (name, plan.nodes[name].operator, rows_in, rows_out, f"{metrics.busy_ns / 1e9:.2f} s", counters)
