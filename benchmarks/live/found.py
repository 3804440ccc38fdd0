"""What has been measured, and where it is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from ..epochs import cases
from ..nexmark.engines import OURS_LIVE, Engine
from ..nexmark.machine import about
from ..nexmark.queries import AVERAGED
from ..nexmark.results import Results

LARGE = "large"
#: q8 reads no bids.
LARGE_QUERIES = tuple(name for name in AVERAGED if name != "q8")
#: Not among the engines of `make bench`: it answers no query with state.
PAIR = Engine(
    name="pyarrow_pair",
    title="two bare pyarrow loops",
    kind="reference",
    environment="pyarrow",
    script="engine_pyarrow_pair",
    queries=("q0", "q1", "q2"),
    note="two processes, each with one thread and half of the files, no checkpoints",
)

Seconds: TypeAlias = Mapping[str, Sequence[float]]


class Store:
    """A file for each measurement that is not of a query, with when and on what it was made."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def has(self, name: str) -> bool:
        return self._path(name).exists()

    def names(self) -> list[str]:
        return sorted(path.stem for path in self._folder.glob("*.json"))

    def save(self, name: str, found: Mapping[str, Any]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._path(name).write_text(json.dumps({"about": about(), "found": dict(found)}, indent=1))

    def load(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self._read(name)["found"]
        return found

    def abouts(self) -> Iterator[dict[str, Any]]:
        for name in self.names():
            yield self._read(name)["about"]

    def case(self, name: str) -> Seconds:
        """What `benchmarks.epochs` has kept."""
        seconds: dict[str, list[float]] = json.loads((cases.RESULTS / f"{name}.json").read_text())
        return seconds

    def results(self, part: str) -> Path:
        return self._folder / part

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.json"

    def _read(self, name: str) -> dict[str, Any]:
        values: dict[str, Any] = json.loads(self._path(name).read_text())
        return values


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """All that the page is made from."""

    #: By case of `benchmarks.epochs`.
    cases: Mapping[str, Seconds]
    #: By peer and kind: `p50_s`, `p99_s` and `rows`, or `wrong`.
    latencies: Mapping[str, Mapping[str, Any]]
    #: By source: what Real-Time Mode says to it; empty where it runs.
    realtime: Mapping[str, str]
    queries: Results
    large: Results
    #: Of all measurements but those of queries, which have their own.
    abouts: Sequence[Mapping[str, Any]]
    #: For a page without measurements.
    now: Mapping[str, Any]

    def is_whole(self, cases: Sequence[str], events: int, large_events: int) -> bool:
        """Whether every part was measured, on all rows."""
        return (
            set(cases) <= set(self.cases)
            and bool(self.latencies)
            and _has_all(self.queries, AVERAGED, events)
            and _has_all(self.large, LARGE_QUERIES, large_events)
        )


def _has_all(results: Results, queries: Sequence[str], events: int) -> bool:
    found = [results.get(engine, query) for engine in (OURS_LIVE, "polars") for query in queries]
    return all(result is not None and result.events >= events for result in found)
