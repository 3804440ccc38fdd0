"""The results as Markdown: for the screen and for `docs/benchmarks.md`."""

from __future__ import annotations

from collections.abc import Sequence

from .engines import ENGINES, OURS, OURS_ON_CSV
from .queries import AVERAGED, COMPARED, QUERIES
from .results import Result, Results
from .targets import Seconds, best_peer, targets

CHART = "benchmarks.svg"
_MIB = 2**20


def document(results: Results, seconds: Seconds, cases: str) -> str:
    """The whole page; `cases` are the sections of `benchmarks.epochs`."""
    parts = [
        "# Benchmarks",
        "Written by `make bench`; do not edit. Numbers are as measured, also where others are faster. "
        "Live workers have a [page of their own](benchmarks-live.md).",
        _setting(results),
        _targets(results, seconds),
        _rates(results),
        f"![Events per second of each engine in each query]({CHART})",
        _ratios(results),
        _engines(results),
        *(_query(results, query) for query in COMPARED if _found(results, query)),
        _ours(results),
        _failures(results),
        cases,
        METHOD,
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


METHOD = """## Method

Nexmark's events are made once, seeded, by the rules of `nexmark.source` (46 bids, 3 auctions and 1 person in 50), and
written as 8 Parquet files a table with Snappy; for engines without Parquet as one CSV file a table, with times in
milliseconds. Each run is a process tree of its own in an environment of its own, with two cores or threads; the engines
take turns on each query, and who is first changes. The files are in the page cache.

- **Job**: from the call that starts the job, its planning included, to its last commit; medians. Libraries are imported
  by then, and a session is up that has run no query, but one empty job: that is how ours gets its Python workers, and
  Structured Streaming is given one, too. PyFlink tells its net runtime, without the start of its cluster. Events/s are
  the rows of all tables that a query reads, over this. **Process**: from the start of the interpreter to its end.
- **CPU**: of all processes of the tree, as the kernel counts each. **Peak memory**: the greatest sum of the
  proportional set sizes (PSS) of the tree, looked at every 0.2 s, in a run of its own: looking holds processes up.
- DuckDB answers every query over the same files, and every answer is compared with its: the same rows, each as often.
  An engine whose answer differs is shown as wrong, without a time.
- q12 counts by the clock, so that no two runs have the same rows: of ours the sums by bidder are compared. **q12e** is
  the same with windows of the event time, for all engines.
- q4, q6, q9, q18 and q19 have results that change. Ours writes every change, and so does Flink; Structured Streaming
  writes the last rows of each micro-batch. What they come to is compared.
- A session with a gap of 10 s ends for us where the next row is 10 s away, for others where it is further: they get a
  gap that is less by half the distance of two events.

`python -m benchmarks.nexmark --help` tells how to run parts of it, and how results accumulate."""


def _found(results: Results, query: str) -> list[Result]:
    return [found for engine in ENGINES if (found := results.get(engine, query)) is not None]


def _setting(results: Results) -> str:
    """Where results are of several commits or days, all are named."""
    described = [result.about for result in results if result.about]
    if not described:
        return "Nothing has been measured yet."
    machines = dict.fromkeys(
        f"{about['cores']} cores ({about['cpu']}), {about['memory_gib']} GiB, "
        f"Python {about['python']}, Java {about['java']}"
        for about in described
    )
    days = sorted({str(about["day"]) for about in described})
    commits = dict.fromkeys(str(result.about["commit"]) for result in results if result.about and result.engine == OURS)
    versions: dict[str, str] = {}
    for about in described:
        versions |= about["versions"]  # type: ignore[operator]
    used = ", ".join(f"{name} {number}" for name, number in sorted(versions.items()))
    most = max((result for result in results), key=lambda result: result.events)
    return (
        f"{' to '.join(dict.fromkeys((days[0], days[-1])))}; {'; '.join(machines)}. "
        f"Commit {', '.join(commits) or 'unknown'}. {used}.\n"
        f"{most.events:,} events; engines that are given fewer say so."
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _targets(results: Results, seconds: Seconds) -> str:
    met = {True: "met", False: "missed", None: ""}
    rows = [(target.title, target.wanted, target.found, met[target.is_met]) for target in targets(results, seconds)]
    return "## Targets\n\n" + _table(("", "Target", "Found", ""), rows)


def _rates(results: Results) -> str:
    rows = []
    for name, engine in ENGINES.items():
        if any(results.get(name, query) for query in COMPARED):
            given = next(found.events for query in COMPARED if (found := results.get(name, query)) is not None)
            mean = results.geometric_mean(OURS, name, AVERAGED) if name != OURS else None
            process = results.process_mean(OURS, name, AVERAGED) if name != OURS else None
            cells = [_rate(results.get(name, query)) for query in COMPARED]
            means = [f"{found[0]:.2f}" if found else "" for found in (mean, process)]
            rows.append((engine.title, f"{given / 1e6:g} M", *cells, *means))
    head = ("Thousand events/s, median", "Events", *COMPARED, "Arroyo is, geometric mean", "by whole processes")
    return "## Throughput\n\n" + _table(head, rows)


def _rate(result: Result | None) -> str:
    if result is None:
        return "-"
    if result.missing:
        return "not installed"
    if result.wrong:
        return result.wrong.partition(":")[0]
    if not result.runs:
        return "not timed yet"
    return f"{result.rate / 1000:,.0f}"


def _ratios(results: Results) -> str:
    """Ours over each other; on CSV where the other reads CSV from the same files."""
    rows = []
    for name, engine in ENGINES.items():
        if engine.kind != "ours":
            ours = OURS_ON_CSV if name == "flink" else OURS
            cells = [
                f"{ratio:.2f}" if (ratio := results.ratio(ours, name, query)) is not None else "-" for query in COMPARED
            ]
            if any(cell != "-" for cell in cells):
                title = f"{engine.title} (ours on CSV, too)" if name == "flink" else engine.title
                rows.append((title, *cells))
    best = [f"{found[1]:.2f}" if (found := best_peer(results, query)) else "-" for query in COMPARED]
    rows.append(("**best peer**", *best))
    return "Arroyo has so many times the events/s of:\n\n" + _table(("", *COMPARED), rows)


def _engines(results: Results) -> str:
    lines = [f"- **{engine.title}**: {engine.note}." for name, engine in ENGINES.items() if _has(results, name)]
    return "## How each was used\n\n" + "\n".join(lines) if lines else ""


def _has(results: Results, engine: str) -> bool:
    return any(result.engine == engine for result in results)


_HEAD = (
    "Engine",
    "Events/s",
    "Job s",
    "Fastest to slowest",
    "Process s",
    "Events/s, process",
    "CPU s",
    "Peak MiB",
    "Arroyo is",
)


def _query(results: Results, query: str) -> str:
    rows = [_row(results, found) for found in _found(results, query) if found.is_right]
    return f"### {query}, {QUERIES[query].title}\n\n" + _table(_HEAD, rows)


def _row(results: Results, found: Result) -> tuple[str, ...]:
    ratio = results.ratio(OURS, found.engine, found.query)
    compared = "" if ratio is None or found.engine == OURS else f"{ratio:.2f} times as fast"
    return (ENGINES[found.engine].title, *_numbers(found), compared)


def _numbers(found: Result) -> tuple[str, ...]:
    fastest, slowest = found.spread
    return (
        f"{found.rate:,.0f}",
        f"{found.job_s:.2f}",
        f"{fastest:.2f} to {slowest:.2f}",
        f"{found.process_s:.1f}",
        f"{found.process_rate:,.0f}",
        f"{found.cpu_s:.1f}",
        f"{found.peak_bytes / _MIB:,.0f}",
    )


def _ours(results: Results) -> str:
    rows = []
    for name, query in QUERIES.items():
        found = results.get(OURS, name)
        if found is not None:
            numbers = (*_numbers(found), str(found.epochs)) if found.is_right else (_rate(found), *[""] * 7)
            rows.append((f"{name}, {query.title}", f"{found.rows:,}", *numbers))
    if not rows:
        return ""
    head = ("Query", "Events", *_HEAD[1:-1], "Epochs")
    return f"## All queries on {ENGINES[OURS].title}\n\n" + _table(head, rows)


def _failures(results: Results) -> str:
    """Who has no time, and why."""
    lines = []
    for result in results:
        reason = f"not installed: {result.missing}" if result.missing else result.wrong
        if reason:
            lines.append(f"- {ENGINES[result.engine].title}, {result.query}: {' '.join(reason.split())[:300]}")
    return "## Without a time\n\n" + "\n".join(lines) if lines else ""
