"""The results as Markdown: for the screen and for `docs/benchmarks-live.md`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from ..epochs.cases import CASES, section
from ..nexmark.engines import ENGINES, OURS_LIVE
from ..nexmark.queries import AVERAGED
from ..nexmark.results import Result, Results
from .found import LARGE_QUERIES, PAIR, Found
from .latency import PEERS
from .targets import targets

METHOD = """## Method

Queries run as in [the other benchmark](benchmarks.md#method): every answer is compared with DuckDB's, each run is a
process tree of its own with two cores, and *job* is from the call that starts the job, with its planning, to its last
commit. Live workers are started within that time. Ours and Polars take turns; Structured Streaming and PyFlink, which
take long, run once, on fewer events: rates are compared. PyFlink reads CSV.

Latencies are of all rows after some seconds, from when a row was made to when a reader finds it: in a file that is
committed, or as a line on a pipe. `impulse.source` makes rows in lots, 20 a second for each of two subtasks, and ours
go through a shuffle; so do those of Structured Streaming, which come through a socket. PyFlink's, of `datagen`, do not.
PyFlink commits every 250 ms, Structured Streaming as fast as it can, ours as often as is said.

What explains a target that is missed is in [how epochs run](execution.md#what-it-costs)."""


def document(found: Found) -> str:
    parts = [
        "# Live workers, measured",
        "Written by `make bench-live`; do not edit. Numbers are as measured, also where a target is missed.",
        _setting(found),
        _targets(found),
        _latencies(found),
        _queries("## Nexmark on 10 million bids", found.queries, AVERAGED, [OURS_LIVE, "polars", *PEER_ENGINES]),
        _queries("## Nexmark on 40 million bids", found.large, LARGE_QUERIES, [OURS_LIVE, "polars", PAIR.name]),
        _failures(found),
        _realtime(found.realtime),
        *(section(CASES[name], seconds).replace("### ", "## ", 1) for name, seconds in found.cases.items()),
        METHOD,
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


PEER_ENGINES = ("structured_streaming", "flink")
_TITLES = {name: engine.title for name, engine in ENGINES.items()} | {PAIR.name: PAIR.title}


def _setting(found: Found) -> str:
    """Where results are of several commits or days, all are named."""
    results = [result.about for part in (found.queries, found.large) for result in part if result.about]
    abouts: list[Mapping[str, Any]] = [*found.abouts, *results] or [found.now]
    machines = dict.fromkeys(
        f"{about['cores']} cores ({about['cpu']}), {about['memory_gib']} GiB, Python {about['python']}, "
        f"Java {about['java']}"
        for about in abouts
    )
    versions: dict[str, str] = {}
    for result in (*found.queries, *found.large):
        given = result.about.get("versions", {})
        versions |= given if isinstance(given, dict) else {}
    days = sorted({str(about["day"]) for about in abouts})
    commits = dict.fromkeys(str(about["commit"]) for about in abouts)
    used = ", ".join(f"{name} {number}" for name, number in sorted(versions.items()))
    measured = " to ".join(dict.fromkeys((days[0], days[-1])))
    # Ours and what a measurement leaves behind come to twice the cores for a while.
    busy = [about for about in abouts if about.get("load", 0) > 3 * about["cores"]]
    load = max((about["load"] for about in busy), default=0)
    others = f" **Others were at work** during {len(busy)} of {len(abouts)} measurements (load up to {load:.0f})."
    sentences = [f"{measured}; {'; '.join(machines)}", f"Commit {', '.join(commits)}", *([used] if used else [])]
    return ". ".join(sentences) + "." + (others if busy else "")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _targets(found: Found) -> str:
    met = {True: "met", False: "missed", None: ""}
    rows = [(target.title, target.wanted, target.found, met[target.is_met]) for target in targets(found)]
    return "## Targets\n\n" + _table(("", "Target", "Found", ""), rows)


def _latencies(found: Found) -> str:
    rows = []
    for case, kind in (("live_latency", "committed"), ("live_shown", "shown")):
        rows += _ours(found, case, kind)
        for peer in PEERS.values():
            values = found.latencies.get(f"{peer.name}_{kind}")
            if values is not None:
                numbers = (
                    (f"{values[name] * 1000:,.1f} ms" for name in ("p50_s", "p99_s")) if "p50_s" in values else "--"
                )
                rows.append((_KINDS[kind], peer.title, *numbers))
    head = ("From an event to", "", "Half of the rows within", "99 of 100 within")
    return "## Latency at 10,000 rows/s\n\n" + _table(head, rows) if rows else ""


_KINDS = {"committed": "its committed row in files", "shown": "its line on the standard output"}


def _ours(found: Found, case: str, kind: str) -> list[tuple[str, ...]]:
    intervals: dict[str, list[str]] = {}
    for name, values in found.cases.get(case, {}).items():
        intervals.setdefault(name.partition(":")[0], []).append(f"{median(values) * 1000:,.1f} ms")
    return [(_KINDS[kind], f"live workers, {name}", *numbers) for name, numbers in intervals.items()]


def _queries(title: str, results: Results, queries: Sequence[str], engines: Sequence[str]) -> str:
    if not list(results):
        return ""
    seconds, ratios = [], []
    for name in engines:
        given = [found.events for query in queries if (found := results.get(name, query)) is not None]
        if not given:
            continue
        cells = [_seconds(results.get(name, query)) for query in queries]
        seconds.append((_TITLES[name], f"{given[0] / 1e6:.1f} M", *cells))
        if name != OURS_LIVE:
            times = [results.ratio(OURS_LIVE, name, query) for query in queries]
            mean = results.geometric_mean(OURS_LIVE, name, queries)
            cells = ["-" if ratio is None else f"{ratio:.2f}" for ratio in times]
            ratios.append((_TITLES[name], *cells, f"{mean[0]:.2f}" if mean else "-"))
    return "\n\n".join(
        [
            title,
            _table(("Job s, median", "Events", *queries), seconds),
            "Live workers have so many times the events/s of:",
            _table(("", *queries, "Geometric mean"), ratios),
        ]
    )


def _seconds(result: Result | None) -> str:
    if result is None:
        return "-"
    if result.missing:
        return "not installed"
    return result.wrong.partition(":")[0] if result.wrong else f"{result.job_s:.2f}"


def _failures(found: Found) -> str:
    """Who has no number, and why."""
    lines = [
        f"- {_TITLES[result.engine]}, {result.query}: {' '.join((result.missing or result.wrong).split())[:300]}"
        for part in (found.queries, found.large)
        for result in part
        if result.missing or result.wrong
    ]
    lines += [
        f"- {name.replace('_', ' ')}: {' '.join(values['wrong'].split())[-300:]}"
        for name, values in found.latencies.items()
        if "wrong" in values
    ]
    return "## Without a number\n\n" + "\n".join(lines) if lines else ""


def _realtime(said: Mapping[str, str]) -> str:
    if not said:
        return ""
    lines = [f"- from {source}: {f'`{text}`' if text else 'it runs'}" for source, text in said.items()]
    return "\n\n".join(
        [
            "## Real-Time Mode of Structured Streaming",
            "`trigger(realTime=...)` takes none of these streams. It reads Kafka, through a package that "
            "pyspark does not bring. What it says:",
            "\n".join(lines),
        ]
    )
