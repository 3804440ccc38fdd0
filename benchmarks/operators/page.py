"""The results as Markdown: for the screen and for `docs/benchmarks-operators.md`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version

from ..nexmark.machine import about
from ..nexmark.results import Results
from .cases import CASES, ENGINES, Case

NAMES = {"arroyo": "Arroyo on Spark", "duckdb": "DuckDB, batch", "structured_streaming": "Structured Streaming"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What the state of an operator takes."""

    case: str
    keys: int
    arrow_bytes: int
    grown_bytes: int


@dataclass(slots=True, kw_only=True)
class Measured:
    """Everything that a run of the benchmark found."""

    results: Results
    #: Rows that are read and written, by case.
    rows_in: Mapping[str, int]
    rows_out: Mapping[str, int]
    memory: Sequence[Memory] = field(default_factory=list)


def document(measured: Measured) -> str:
    """The whole page."""
    cases = [case for case in CASES if measured.results.get("arroyo", case.name)]
    parts = [
        "# What operators cost",
        "Written by `make bench-operators`; do not edit.",
        _setting(),
        *(_case(measured, case) for case in cases),
        *([_memory(measured.memory)] if measured.memory else []),
        METHOD,
    ]
    return "\n\n".join(parts) + "\n"


METHOD = """## Method

Every engine reads the same Parquet files of Nexmark's bids and auctions (8 files each, all columns, Snappy), needs the
same columns of them, and writes Parquet with Snappy. Each run is a process of its own; the engines take turns, and
who is first changes. Seconds are from the call that starts the job, in a Spark session that is up but cold, to its
end; ratios are of medians. The files are in the page cache.

Arroyo and Structured Streaming have two cores, and eight epochs or micro-batches with a checkpoint each (RocksDB with
changelog checkpoints, a file of each table a micro-batch, `AvailableNow`); watermarks are one second behind. DuckDB
has two threads, sees all rows at once, and keeps no checkpoint. Changing results are appended by both streaming
engines: Arroyo writes rows and their retractions, Structured Streaming the new rows.

DuckDB checks every answer: the same rows. Of windows Structured Streaming writes only those that its last watermark has
passed, since it does not know the end of the data; its answer is compared with those.

Memory: a checkpoint with the state of so many keys (of a join: one row of each side for each key) is opened by a fresh
process in one subtask, without the cache on disk; a batch of 1,000 rows is processed, and all windows fire, whose rows
are thrown away. "Grown" is by how much the process was larger at most; "Arrow" is what all rows of the checkpoint's
tables take."""


def _setting() -> str:
    on = about()
    used = ", ".join(f"{name} {number}" for name, number in versions().items())
    where = f"{on['day']}, {on['cores']} cores ({on['cpu']}), {on['memory_gib']} GiB"
    return f"{where}. Commit {on['commit']}, Python {on['python']}, {used}."


def versions() -> dict[str, str]:
    return {name: version(name) for name in ("arroyo-core", "arroyo-std", "pyarrow", "pyspark", "duckdb")}


def _case(measured: Measured, case: Case) -> str:
    rows = measured.rows_in[case.name]
    lines = [
        f"## {case.title}",
        "",
        f"{rows:,} rows in, {measured.rows_out[case.name]:,} in the answer.",
        "",
        "| Engine | Rows/s | Seconds, median | Fastest to slowest | Process | Epochs | Arroyo is |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for engine in ENGINES:
        found = measured.results.right(engine, case.name)
        if found is not None:
            ratio = measured.results.ratio("arroyo", engine, case.name)
            compared = "" if ratio is None or engine == "arroyo" else f"{ratio:.2f} times as fast"
            fastest, slowest = found.spread
            lines.append(
                f"| {NAMES[engine]} | {found.rate:,.0f} | {found.job_s:.2f} | {fastest:.2f} to {slowest:.2f} "
                f"| {found.process_s:.1f} | {found.epochs} | {compared} |"
            )
    return "\n".join(lines)


def _memory(found: Sequence[Memory]) -> str:
    lines = [
        "## Memory of the state",
        "",
        "| Operator | Keys | Arrow | Grown | Times the Arrow size |",
        "|---|---:|---:|---:|---:|",
    ]
    operators = {case.name: case.operator for case in CASES}
    lines += [
        f"| `{operators[memory.case]}` | {memory.keys:,} | {memory.arrow_bytes / 2**20:,.1f} MiB "
        f"| {memory.grown_bytes / 2**20:,.1f} MiB | {memory.grown_bytes / memory.arrow_bytes:.2f} |"
        for memory in found
    ]
    return "\n".join(lines)
