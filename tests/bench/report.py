"""The results as Markdown: for the screen and for `docs/benchmarks.md`."""

from __future__ import annotations

from cases import CASES, MIN_PRICE
from results import Results, machine, versions

NAMES = {"arroyo": "Arroyo on Spark", "pyarrow": "bare pyarrow loop", "structured_streaming": "Structured Streaming"}
TITLES = {"filter": "Filter, project, Parquet sink", "shuffle": "The same with a shuffle by auction"}


def document(results: Results) -> str:
    """The whole page."""
    parts = [
        "# Benchmarks",
        "Written by `make bench`; do not edit.",
        _setting(results),
        *(_case(results, case) for case in CASES if results.summaries(case)),
        METHOD,
    ]
    return "\n\n".join(parts) + "\n"


METHOD = """## Method

Every engine reads the same Parquet files (8 files, all columns of Nexmark's bids, Snappy), needs the same five
columns, and writes Snappy. Each run is a process of its own; the engines take turns, and who is first changes.
Seconds are from the call that starts the job, in a Spark session that is up but cold, to its end. "Process" is all
of it, from the start of the interpreter. The files are in the page cache.
Arroyo and Structured Streaming have two cores and keep checkpoints; the pyarrow loop is one Python thread (pyarrow
decodes in its own), without checkpoints.
DuckDB checks every answer: the same rows, and after a shuffle every auction in the files of one subtask."""


def _setting(results: Results) -> str:
    about = machine()
    used = ", ".join(f"{name} {number}" for name, number in versions().items())
    setting = f"{about['day']}, {about['cores']} cores ({about['cpu']}), {about['memory_gib']} GiB. {used}."
    return (
        f"{setting}\n{results.rows:,} bids, {results.input_bytes / 2**20:,.0f} MiB; the query keeps the "
        f"{results.answer_rows:,} with `price >= {MIN_PRICE}`."
    )


def _case(results: Results, case: str) -> str:
    lines = [
        f"## {TITLES[case]}",
        "",
        "| Engine | Rows/s | Seconds, median | Fastest to slowest | Process | Epochs | Arroyo is |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for summary in results.summaries(case):
        ratio = results.ratio(case, summary.engine)
        compared = "" if ratio is None or summary.engine == "arroyo" else f"{ratio:.2f} times as fast"
        lines.append(
            f"| {NAMES[summary.engine]} | {results.rows / summary.job_s:,.0f} | {summary.job_s:.2f} "
            f"| {summary.fastest_s:.2f} to {summary.slowest_s:.2f} | {summary.wall_s:.1f} "
            f"| {summary.epochs} | {compared} |"
        )
    return "\n".join(lines)
