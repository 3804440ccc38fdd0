"""What runs came to, as tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from ..soak.samples import KINDS, WORKER
from .command import JobEpoch
from .many import Outcome, median, percentile
from .memory import median_count, median_mib

_TIMES = ("epochs", "median", "95 %", "longest", "to the commit")


def memory_table(outcomes: Sequence[Outcome]) -> str:
    """A row for each run; what a further pipeline takes is told beside the first run."""
    first = outcomes[0]
    columns = ["pipelines", *KINDS, "workers", "all (MiB)", "per further pipeline", "cores busy"]
    rows = []
    for outcome in outcomes:
        total = median_mib(outcome.late_looks)
        further = len(outcome.pipelines) - len(first.pipelines)
        share = f"{(total - median_mib(first.late_looks)) / further:.0f}" if further > 0 else ""
        rows.append(
            [
                str(len(outcome.pipelines)),
                *(f"{median_mib(outcome.late_looks, kind):.0f}" for kind in KINDS),
                str(median_count(outcome.late_looks, WORKER)),
                f"{total:.0f}",
                share,
                f"{outcome.cores():.2f}",
            ]
        )
    return _table(columns, rows)


def times_table(outcome: Outcome) -> str:
    """Epochs of the pipelines that nobody harmed, between two faults."""
    moments = sorted((time_s, name) for name, time_s in outcome.faults.items())
    bounds = [(0.0, "from the start"), *((time_s, f"after {name}") for time_s, name in moments)]
    ends = [*(time_s for time_s, _ in bounds[1:]), float("inf")]
    rows = [
        [name, *_times(outcome.epochs_between(outcome.healthy, start_s, end_s))]
        for (start_s, name), end_s in zip(bounds, ends, strict=True)
    ]
    slowest = max(outcome.healthy, key=lambda job: median([epoch.duration_s for epoch in _epochs(outcome, job.name)]))
    rows.append([f"the slowest of them, {slowest.name}", *_times(_epochs(outcome, slowest.name))])
    return _table(["", *_TIMES], rows)


def growth_line(outcome: Outcome) -> str:
    """Memory early in the run and late in it, of one in which pipelines have ended in between."""
    early, late = median_mib(outcome.early_looks), median_mib(outcome.late_looks)
    peak = max(look.total_bytes for look in outcome.looks) / 2**20
    return f"memory: {early:.0f} MiB before the first fault, {late:.0f} MiB in the last half, {peak:.0f} MiB at most"


def report(outcomes: Sequence[Outcome]) -> str:
    parts = [memory_table(outcomes)]
    for outcome in outcomes:
        count, about = len(outcome.pipelines), outcome.about
        parts.append(
            f"{count} pipelines, {outcome.duration_s / 60:.1f} minutes, {len(outcome.epochs):,} epochs, exit code "
            f"{outcome.code}; commit {about['commit']}, {about['cores']} cores, {about['day']}\n"
            f"{growth_line(outcome)}\n\n{times_table(outcome)}"
        )
    return "\n\n".join(parts)


def _epochs(outcome: Outcome, job: str) -> list[JobEpoch]:
    return [epoch for epoch in outcome.epochs if epoch.job == job and epoch.number > 1]


def _times(epochs: Sequence[JobEpoch]) -> list[str]:
    durations = [epoch.duration_s for epoch in epochs]
    times = [median(durations), percentile(durations, 0.95), max(durations, default=0.0)]
    commits = median([epoch.commit_s for epoch in epochs])
    return [f"{len(epochs):,}", *(f"{time_s:.2f} s" for time_s in times), f"{commits:.2f} s"]


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---", *["---:"] * (len(columns) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
