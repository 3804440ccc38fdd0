"""Measurements, what they come to, and where they are kept: a file for each engine and query."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of one engine. `wrong` says what is wrong with its answer, or why it has none; such a run has no time."""

    job_s: float = 0.0
    process_s: float = 0.0
    cpu_s: float = 0.0
    peak_bytes: int = 0
    epochs: int = 0
    wrong: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """All runs of one engine on one query."""

    engine: str
    query: str
    events: int
    #: The rows that were read.
    rows: int = 0
    runs: Sequence[Run] = ()
    #: A run more, of which only the memory counts: looking at that takes time.
    watched: Run | None = None
    #: When, on what and with which versions; see `machine.py`.
    about: dict[str, object] = field(default_factory=dict)
    #: Why the engine could not be installed, or cannot be asked this.
    missing: str = ""

    @property
    def wrong(self) -> str:
        """What is wrong with any of the runs: then none of them counts."""
        return next((run.wrong for run in self._all if run.wrong), "")

    @property
    def _all(self) -> Sequence[Run]:
        return (self.watched, *self.runs) if self.watched else self.runs

    @property
    def is_right(self) -> bool:
        return bool(self.runs) and not self.wrong

    @property
    def job_s(self) -> float:
        return median(run.job_s for run in self.runs)

    @property
    def process_s(self) -> float:
        return median(run.process_s for run in self.runs)

    @property
    def cpu_s(self) -> float:
        return median(run.cpu_s for run in self.runs)

    @property
    def peak_bytes(self) -> int:
        return self.watched.peak_bytes if self.watched else 0

    @property
    def epochs(self) -> int:
        return max(run.epochs for run in self.runs)

    @property
    def spread(self) -> tuple[float, float]:
        """The fastest and the slowest job."""
        return min(run.job_s for run in self.runs), max(run.job_s for run in self.runs)

    @property
    def rate(self) -> float:
        """Events per second, of the median job."""
        return self.rows / self.job_s

    @property
    def process_rate(self) -> float:
        return self.rows / self.process_s


class Results:
    """What has been measured so far."""

    def __init__(self, found: Iterable[Result] = ()) -> None:
        self._found = {(result.engine, result.query): result for result in found}

    def __iter__(self) -> Iterator[Result]:
        return iter(self._found.values())

    def get(self, engine: str, query: str) -> Result | None:
        return self._found.get((engine, query))

    def right(self, engine: str, query: str) -> Result | None:
        """Only with right answers."""
        found = self.get(engine, query)
        return found if found is not None and found.is_right else None

    def ratio(self, ours: str, other: str, query: str) -> float | None:
        """How many times the events per second of `other` ours has; None where one of them has no right answer."""
        first, second = self.right(ours, query), self.right(other, query)
        return first.rate / second.rate if first and second else None

    def process_ratio(self, ours: str, other: str, query: str) -> float | None:
        """The same of whole processes; None also where they were given different numbers of events."""
        first, second = self.right(ours, query), self.right(other, query)
        is_fair = first and second and first.events == second.events
        return first.process_rate / second.process_rate if first and second and is_fair else None

    def memory_ratio(self, ours: str, other: str, query: str) -> float | None:
        """Our peak memory over that of `other`."""
        first, second = self.right(ours, query), self.right(other, query)
        return first.peak_bytes / second.peak_bytes if first and second and second.peak_bytes else None

    def geometric_mean(self, ours: str, other: str, queries: Iterable[str]) -> tuple[float, int] | None:
        """Of the ratios that there are, and how many those are."""
        return _mean([self.ratio(ours, other, query) for query in queries])

    def process_mean(self, ours: str, other: str, queries: Iterable[str]) -> tuple[float, int] | None:
        """The same of whole processes."""
        return _mean([self.process_ratio(ours, other, query) for query in queries])


def _mean(ratios: Iterable[float | None]) -> tuple[float, int] | None:
    known = [ratio for ratio in ratios if ratio is not None]
    return (geometric_mean(known), len(known)) if known else None


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def save(folder: Path, result: Result) -> None:
    """Replaces what an earlier run found."""
    path = folder / result.engine / f"{result.query}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(result), indent=1) + "\n")


def load(folder: Path) -> Results:
    return Results(_read(path) for path in sorted(folder.glob("*/*.json")))


def load_one(folder: Path, engine: str, query: str) -> Result | None:
    path = folder / engine / f"{query}.json"
    return _read(path) if path.exists() else None


def _read(path: Path) -> Result:
    values = json.loads(path.read_text())
    watched = Run(**values["watched"]) if values.get("watched") else None
    return Result(**{**values, "runs": tuple(Run(**run) for run in values["runs"]), "watched": watched})
