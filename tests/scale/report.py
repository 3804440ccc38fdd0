"""What was measured, as tables in Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from .edges import EDGES
from .measuring import SHOWN, Measured

MIB = 2**20
#: Of S3: what is written, and what is only read.
KINDS = ("read", "write", "create", "list", "stat", "delete", "copy")


def report(runs: Sequence[Measured]) -> str:
    return "\n\n".join([_memory(runs), _calls(runs), *_problems(runs)])


def _memory(runs: Sequence[Measured]) -> str:
    rows = [
        f"| Edge | Size | Result | Epochs | Median epoch | State | {' | '.join(f'{kind}' for kind in SHOWN)} |",
        f"|---|---:|---|---:|---:|---:|{'---:|' * len(SHOWN)}",
    ]
    for run in runs:
        peaks = " | ".join(f"{run.peak_bytes.get(kind, 0) / MIB:,.0f} MiB" for kind in SHOWN)
        middle = f"{statistics.median(run.epoch_s):.1f} s" if run.epoch_s else ""
        result = "exact" if not run.problem else "FAILED"
        rows.append(
            f"| {EDGES[run.edge].title} | {run.share:.2%} | {result} | {run.epochs} | {middle} "
            f"| {run.state_bytes / MIB:,.1f} MiB | {peaks} |"
        )
    return "Peak of resident memory, of the largest process of each kind:\n\n" + "\n".join(rows)


def _calls(runs: Sequence[Measured]) -> str:
    rows = [
        f"| Edge | Of | {' | '.join(KINDS)} | Read | Written | Largest |",
        f"|---|---|{'---:|' * len(KINDS)}---:|---:|---:|",
    ]
    for run in runs:
        epochs = max(1, run.epochs)
        for place, traffic in run.traffic.items():
            if not traffic.calls:
                continue
            numbers = " | ".join(f"{traffic.calls.get(kind, 0) / epochs:,.0f}" for kind in KINDS)
            rows.append(
                f"| {run.edge} | {place} | {numbers} | {traffic.read_bytes / epochs / MIB:,.2f} MiB "
                f"| {traffic.written_bytes / epochs / MIB:,.2f} MiB | {traffic.largest_bytes / MIB:,.2f} MiB |"
            )
    return "Calls to storage and bytes, per epoch:\n\n" + "\n".join(rows)


def _problems(runs: Sequence[Measured]) -> list[str]:
    return [f"{run.edge} FAILED: {run.problem}" for run in runs if run.problem]
