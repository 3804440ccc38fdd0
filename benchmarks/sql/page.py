"""The results as Markdown: for the screen and for `docs/benchmarks-sql.md`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from statistics import median

from ..nexmark.machine import about
from ..nexmark.results import geometric_mean
from .sides import ASKED, SQL, YAML

WANTED = 1.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was found of one query: CPU seconds of each run and the number of nodes, by side."""

    query: str
    seconds: Mapping[str, Sequence[float]]
    nodes: Mapping[str, int]
    compiling_s: float

    @property
    def ratio(self) -> float:
        return median(self.seconds[SQL]) / median(self.seconds[YAML])


def document(found: Sequence[Measured], *, events: int) -> str:
    """The whole page."""
    ratios = {one.query: one.ratio for one in found}
    worst = max(ratios, key=lambda query: ratios[query])
    mean = geometric_mean(list(ratios.values()))
    met = "met" if mean <= WANTED else "not met"
    return (
        "\n\n".join(
            [
                "# What SQL costs",
                "Written by `make bench-sql`; do not edit.",
                _setting(found, events),
                _table(found),
                f"The geometric mean is **{mean:.2f}** over {len(found)} queries; wanted is at most {WANTED:g}: {met}. "
                f"The most is {ratios[worst]:.2f}, of {worst}.",
                METHOD,
            ]
        )
        + "\n"
    )


METHOD = """## Method

Both sides read the same Parquet files of Nexmark's tables, and write what the examples write; answers are checked
against DuckDB's. `arroyo sql compile` gives the pipeline of the SQL side, so that both are run in the same way: in one
process without Spark, with two subtasks. After a run of each side that is not counted they take turns, and who is first
changes. Seconds are those of CPU of all threads while the job runs; ratios
are of medians. Planning is not counted; what compiling takes is shown, without the imports that a process pays once."""


def _setting(found: Sequence[Measured], events: int) -> str:
    machine = about()
    runs = min(len(one.seconds[SQL]) for one in found)
    return (
        f"The queries of `examples/nexmark` in SQL beside the same in YAML: CPU of {events:,} events, median of {runs} "
        f"runs on {machine['day']}. {machine['cpu']}, {machine['cores']} cores, Python {machine['python']}, "
        f"DataFusion {version('datafusion')}, commit {machine['commit']}; load when the page was written "
        f"{machine['load']}."
    )


def _table(found: Sequence[Measured]) -> str:
    head = [
        "| Query | | YAML, CPU s | SQL, CPU s | Ratio | Nodes in YAML | Nodes of SQL | Compiling |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    rows = [
        f"| {one.query} | {ASKED[one.query].title} | {median(one.seconds[YAML]):.2f} | "
        f"{median(one.seconds[SQL]):.2f} | {one.ratio:.2f} | {one.nodes[YAML]} | {one.nodes[SQL]} | "
        f"{one.compiling_s * 1000:.0f} ms |"
        for one in sorted(found, key=lambda one: int(one.query[1:]))
    ]
    return "\n".join([*head, *rows])
