"""Whether anything grew: the first quarter of a run, after its warm-up, beside the last one."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .samples import KINDS, SHUFFLES, Sample

#: What has grown by no more than this is flat; of numbers of things, a few more are, and of times, some milliseconds.
TOLERANCE = 0.10
FEW = 3
FEW_MS = 3
FEW_MIB = 1
#: Of a run: workers start, code is compiled, the first windows fill.
WARM_UP = 0.1
#: And no more than this.
MAX_WARM_UP_S = 300.0

_FEW = {"ms": FEW_MS, "MiB": FEW_MIB}

MIB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """When it was committed, after the start, and what it told about itself."""

    time_s: float
    number: int
    duration_s: float
    commit_s: float
    source_rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A quantity over time, in its unit; numbers of things are `is_count`."""

    name: str
    unit: str
    times_s: Sequence[float]
    values: Sequence[float]
    is_count: bool = False
    #: Whether it is asked to be flat; some are only shown.
    is_judged: bool = True
    #: It grows until somebody collects garbage, and must come back to where it was: at the end its lowest value counts.
    falls_back: bool = False
    #: It goes up and down with every epoch: the highest values count.
    has_peaks: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The medians of a measure in the first and in the last quarter, or its peaks; of what falls back, the lowest in
    the last."""

    measure: Measure
    first: float
    last: float

    @property
    def growth(self) -> float:
        return self.last / self.first - 1 if self.first else float(self.last > 0)

    @property
    def is_flat(self) -> bool:
        """It has not grown. What became less does no harm."""
        few = FEW if self.measure.is_count else _FEW.get(self.measure.unit, 0)
        return self.last - self.first <= few or self.growth <= TOLERANCE

    @property
    def verdict(self) -> str:
        if not self.measure.is_judged:
            return "shown only"
        return "flat" if self.is_flat else "GROWS"


def warm_up_s(duration_s: float) -> float:
    return min(MAX_WARM_UP_S, duration_s * WARM_UP)


def compare(measure: Measure, start_s: float, end_s: float) -> Change:
    """Between the two moments; a quarter without any value counts as nothing."""
    quarter_s = (end_s - start_s) / 4
    first = _between(measure, start_s, start_s + quarter_s)
    last = _between(measure, end_s - quarter_s, end_s)
    middle = max if measure.has_peaks else statistics.median
    return Change(measure=measure, first=middle(first), last=min(last) if measure.falls_back else middle(last))


def _between(measure: Measure, start_s: float, end_s: float) -> list[float]:
    found = [value for time_s, value in zip(measure.times_s, measure.values, strict=True) if start_s <= time_s <= end_s]
    return found or [0.0]


def measures(samples: Sequence[Sample], epochs: Sequence[Epoch]) -> list[Measure]:
    """Everything that is asked to be flat."""
    times = [sample.time_s for sample in samples]

    def of(
        name: str, unit: str, values: Sequence[float], *, is_count: bool = False, falls_back: bool = False
    ) -> Measure:
        return Measure(name=name, unit=unit, times_s=times, values=values, is_count=is_count, falls_back=falls_back)

    kinds = [kind for kind in KINDS if any(kind in sample.pss_bytes for sample in samples)]
    folders = samples[-1].files if samples else {}
    return [
        *_epoch_measures(epochs),
        _cpu_measure(samples),
        *(of(f"memory: {kind}", "MiB", _series(samples, "pss_bytes", kind, 1 / MIB)) for kind in kinds),
        *(of(f"descriptors: {kind}", "", _series(samples, "descriptors", kind), is_count=True) for kind in kinds),
        *(of(f"number: {kind}", "", _series(samples, "processes", kind), is_count=True) for kind in kinds),
        *(
            of(f"files: {folder}", "", _series(samples, "files", folder), is_count=True, falls_back=folder == SHUFFLES)
            for folder in folders
        ),
        of("bytes of state", "MiB", [sample.state_bytes / MIB for sample in samples]),
    ]


def _series(samples: Sequence[Sample], field: str, key: str, factor: float = 1) -> list[float]:
    """One value of each sample's mapping; 0 where it is missing."""
    found: list[Mapping[str, int]] = [getattr(sample, field) for sample in samples]
    return [each.get(key, 0) * factor for each in found]


def _epoch_measures(epochs: Sequence[Epoch]) -> list[Measure]:
    times = [epoch.time_s for epoch in epochs]
    gaps = [(after.time_s - before.time_s) * 1000 for before, after in itertools.pairwise(epochs)]
    return [
        Measure(name="from epoch to epoch", unit="ms", times_s=times[1:], values=gaps),
        Measure(name="time per epoch", unit="ms", times_s=times, values=[epoch.duration_s * 1000 for epoch in epochs]),
        Measure(name="to its commit", unit="ms", times_s=times, values=[epoch.commit_s * 1000 for epoch in epochs]),
        Measure(
            name="rows per epoch",
            unit="",
            times_s=times,
            values=[epoch.source_rows for epoch in epochs],
            is_judged=False,
        ),
    ]


def _cpu_measure(samples: Sequence[Sample]) -> Measure:
    """Of all processes together, between two samples."""
    pairs = [(before, after) for before, after in itertools.pairwise(samples) if after.epochs > before.epochs]
    return Measure(
        name="processor time per epoch",
        unit="ms",
        times_s=[after.time_s for _, after in pairs],
        values=[(after.cpu_s - before.cpu_s) / (after.epochs - before.epochs) * 1000 for before, after in pairs],
    )


def table(changes: Sequence[Change]) -> str:
    """As Markdown."""
    rows = ["| | First quarter | Last quarter | Change | |", "|---|---:|---:|---:|---|"]
    for change in changes:
        unit = f" {change.measure.unit}" if change.measure.unit else ""
        growth = f"{change.growth:+.1%}" if change.first else ("0" if not change.last else "new")
        rows.append(
            f"| {change.measure.name} | {change.first:,.1f}{unit} | {change.last:,.1f}{unit} | {growth} "
            f"| {change.verdict} |"
        )
    return "\n".join(rows)
