"""Measures Arroyo on Nexmark beside its peers, and what epochs cost; makes `docs/benchmarks.md`.

    make bench                                         everything, about an hour and a half on 2 cores
    make bench BENCH_ARGS="--only queries"             the queries without the cases about epochs
    make bench BENCH_ARGS="--engines arroyo,flink --queries q5,q7 --runs 5"
    make bench BENCH_ARGS="--missing"                  what is not measured yet: go on after a stop
    make bench BENCH_ARGS="report"                     the page again, from what has been measured
    make bench-smoke                                   a little of everything, in minutes; no times are kept

Parts: `queries`, and the cases of `benchmarks.epochs` by their names. Each engine has an environment of its own, made
by uv from `benchmarks/nexmark/requirements-ENGINE.txt` when it is first needed; one that fails to install is reported.
Results accumulate below `build/bench/results`, a file for each engine and query, and in `build/bench/epochs`. A new
measurement replaces the one before, so that parts can be run at any time, and the page is made from all that is there.
It goes to `docs` once ours has 3 runs on 10 million events of all queries that are compared; before, to `build/bench`.
Environments, data and results go with `rm -r build/bench`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

from ..epochs.cases import CASES, load_seconds, sections
from ..modules import ENVIRONMENT, ROOT, module_command
from .chart import draw
from .engines import ENGINES, OURS
from .environments import BUILD
from .measuring import RESULTS, Measurer
from .queries import COMPARED, QUERIES
from .report import CHART, document
from .results import Results, load
from .running import positive

DEFAULT_EVENTS = 10_000_000
DEFAULT_RUNS = 3
SMOKE_EVENTS = 20_000
#: Those that are installed in seconds.
SMOKE_ENGINES = ("duckdb", "polars", "pyarrow", "bytewax")
#: A query that reads and writes, and one with state.
SMOKE_QUERIES = ("q1", "q5")
#: Those that start a JVM answer one only, so that it all takes some minutes.
SMOKE_ENGINES_ON_SPARK = ("arroyo", "arroyo_live", "structured_streaming")
SMOKE_QUERIES_ON_SPARK = ("q5",)
QUERY_PART = "queries"
PARTS = (QUERY_PART, *CASES)


def main() -> int:
    args = parse()
    if args.command == "smoke":
        return smoke()
    if args.command == "run":
        parts = [part for part in args.only or PARTS if part not in args.skip]
        if QUERY_PART in parts:
            measurer = Measurer(
                events=args.events, runs=args.runs, limits=dict(args.limit), is_missing_only=args.missing
            )
            measurer.measure_all([ENGINES[name] for name in args.engines], [QUERIES[name] for name in args.queries])
        cases = [part for part in parts if part != QUERY_PART]
        if cases:
            command = module_command("benchmarks.epochs", *(["--missing"] if args.missing else []), *cases)
            subprocess.run(command, env=os.environ | ENVIRONMENT, check=True)
    write_page(load(RESULTS))
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.nexmark", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", nargs="?", choices=("run", "report", "smoke"), default="run")
    parser.add_argument("--events", type=positive, default=DEFAULT_EVENTS, help="events of all kinds; 10 million")
    parser.add_argument("--runs", type=positive, default=DEFAULT_RUNS, help="runs of every engine on every query; 3")
    parser.add_argument("--engines", type=_names(ENGINES), default=list(ENGINES), help=", ".join(ENGINES))
    parser.add_argument(
        "--queries", type=_names(QUERIES), default=list(QUERIES), help="q0,q1,...; all have all but peers"
    )
    parser.add_argument("--limit", type=_limit, action="append", default=[], metavar="ENGINE=EVENTS", help=_limits())
    parser.add_argument("--only", type=_names(PARTS), help=f"these parts: {', '.join(PARTS)}")
    parser.add_argument("--skip", type=_names(PARTS), default=[], help="not these parts")
    parser.add_argument("--missing", action="store_true", help="only what has not been measured yet")
    return parser.parse_args()


def _limits() -> str:
    limits = [f"{engine.name} {engine.max_events:,}" for engine in ENGINES.values() if engine.max_events]
    return f"the most events that an engine is given; by default {', '.join(limits)}"


def _names(known: Sequence[str] | dict[str, object]):  # type: ignore[no-untyped-def]
    def parse_names(text: str) -> list[str]:
        names = text.split(",")
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
        return names

    return parse_names


def _limit(text: str) -> tuple[str, int]:
    engine, equals, events = text.partition("=")
    if not equals or engine not in ENGINES:
        raise argparse.ArgumentTypeError(f"ENGINE=EVENTS is wanted, with one of {', '.join(ENGINES)}, not {text!r}")
    return engine, positive(events)


def write_page(results: Results) -> None:
    """Below `build/bench`; in `docs`, too, where ours was measured on all the events and often enough."""
    rates = {
        query: {name: found.rate for name in ENGINES if (found := results.right(name, query))} for query in COMPARED
    }
    titles = {name: engine.title for name, engine in ENGINES.items()}
    picture, page = draw(rates, titles, list(ENGINES)), document(results, load_seconds(), sections())
    folders = [BUILD, *([ROOT / "docs"] if is_complete(results) else [])]
    BUILD.mkdir(parents=True, exist_ok=True)
    for folder in folders:
        (folder / CHART).write_text(picture)
        (folder / "benchmarks.md").write_text(page)
    print(f"\n{page}\nwritten to {', '.join(str(folder.relative_to(ROOT)) for folder in folders)}")


def is_complete(results: Results) -> bool:
    """Whether the page is worth keeping: all compared queries of ours, on as many events, as often as by default."""
    found = [results.get(OURS, query) for query in COMPARED]
    return all(result and result.events >= DEFAULT_EVENTS and len(result.runs) >= DEFAULT_RUNS for result in found)


def smoke() -> int:
    """Every cheap engine on tiny data, with its answers checked; 1 where one is wrong or an engine does not run."""
    folder = BUILD / "smoke"
    shutil.rmtree(folder, ignore_errors=True)
    measurer = Measurer(events=SMOKE_EVENTS, runs=1, results=folder, looks_at_memory=False)
    for queries, engines in (
        (SMOKE_QUERIES_ON_SPARK, SMOKE_ENGINES_ON_SPARK),
        (SMOKE_QUERIES, SMOKE_ENGINES),
    ):
        measurer.measure_all([ENGINES[name] for name in engines], [QUERIES[name] for name in queries])
    results = load(folder)
    failed = [result for result in results if not result.is_right]
    document(results, {}, "")
    for result in failed:
        print(f"{result.engine} on {result.query}: {result.missing or result.wrong}", file=sys.stderr)
    return 1 if failed or not list(results) else 0


if __name__ == "__main__":
    sys.exit(main())
