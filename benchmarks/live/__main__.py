"""Measures live workers beside Structured Streaming, PyFlink and Polars; makes `docs/benchmarks-live.md`.

    make bench-live                                    everything, about 25 minutes on 2 cores
    make bench-live BENCH_ARGS="--only live_shown,large"
    make bench-live BENCH_ARGS="--missing"             what is not measured yet: go on after a stop
    make bench-live BENCH_ARGS="report"                the page again, from what has been measured

Parts: `queries` (Nexmark on 10 million bids), `large` (on 40 million), `peers` (latencies of peers, and what Real-Time
Mode of Structured Streaming says), and the cases `live_*` of `benchmarks.epochs`. Results accumulate below
`build/bench/live`, data and environments are those of `benchmarks.nexmark`. The page goes to `docs` when all parts have
been measured on all rows; before, to `build/bench`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence

from ..epochs.cases import CASES
from ..modules import ENVIRONMENT, ROOT, module_command
from ..nexmark.engines import ENGINES, OURS_LIVE
from ..nexmark.environments import BUILD, NotInstalledError
from ..nexmark.machine import about
from ..nexmark.measuring import Measurer
from ..nexmark.processes import BenchError
from ..nexmark.queries import AVERAGED, QUERIES
from ..nexmark.results import load
from ..nexmark.running import positive
from .found import LARGE, LARGE_QUERIES, PAIR, Found, Store
from .latency import PEERS, measure, realtime
from .page import document

#: 46 of 50 events are bids: 10 and 40 million of them.
EVENTS = 10_869_600
LARGE_FACTOR = 4
LIVE_CASES = tuple(name for name in CASES if name.startswith("live_"))
PARTS = (*LIVE_CASES, "peers", "queries", LARGE)
#: Those that take long answer each query once, on so many events at most.
SLOW = {"structured_streaming": 5_000_000, "flink": 5_000_000}


def main(arguments: Sequence[str] | None = None) -> int:
    args = parse(arguments)
    store = Store(BUILD / "live")
    if args.command == "run":
        for part in args.only or PARTS:
            if part in LIVE_CASES:
                measure_case(store, part, is_missing_only=args.missing)
            elif part == "peers":
                measure_peers(store, is_missing_only=args.missing)
            elif part == LARGE:
                measure_large(store, args)
            else:
                measure_queries(store, args)
    write_page(store)
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.live", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", nargs="?", choices=("run", "report"), default="run")
    parser.add_argument("--events", type=positive, default=EVENTS, help="of `queries`; `large` has four times as many")
    parser.add_argument("--runs", type=positive, default=3, help="of `queries`; Structured Streaming and PyFlink: one")
    parser.add_argument("--large-runs", type=positive, default=2)
    parser.add_argument("--only", type=_parts, help=f"these parts: {', '.join(PARTS)}")
    parser.add_argument("--missing", action="store_true", help="only what has not been measured yet")
    return parser.parse_args(arguments)


def _parts(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in PARTS:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(PARTS)}")
    return names


def measure_case(store: Store, name: str, *, is_missing_only: bool) -> None:
    if is_missing_only and store.has(name):
        return
    command = module_command("benchmarks.epochs", name)
    subprocess.run(command, cwd=ROOT, env=os.environ | ENVIRONMENT, check=True)
    store.save(name, {})


def measure_peers(store: Store, *, is_missing_only: bool) -> None:
    for peer in PEERS.values():
        for kind in ("committed", "shown"):
            name = f"{peer.name}_{kind}"
            if is_missing_only and store.has(name):
                continue
            try:
                found = measure(peer, is_shown=kind == "shown")
            except (BenchError, NotInstalledError) as error:
                found = {"wrong": str(error)}
            store.save(name, found)
            print(f"{name}: {json.dumps(found)}", flush=True)
    if not is_missing_only or not store.has("realtime"):
        store.save("realtime", dict(realtime()))


def measure_queries(store: Store, args: argparse.Namespace) -> None:
    """Ours and Polars in turn, several times; then those that take long."""
    for engines, runs in (((OURS_LIVE, "polars"), args.runs), (tuple(SLOW), 1)):
        measurer = Measurer(
            events=args.events,
            runs=runs,
            limits=SLOW,
            results=store.results("queries"),
            is_missing_only=args.missing,
            looks_at_memory=False,
        )
        measurer.measure_all([ENGINES[name] for name in engines], [QUERIES[name] for name in AVERAGED])


def measure_large(store: Store, args: argparse.Namespace) -> None:
    """q8 reads no bids."""
    measurer = Measurer(
        events=args.events * LARGE_FACTOR,
        runs=args.large_runs,
        results=store.results(LARGE),
        is_missing_only=args.missing,
        looks_at_memory=False,
    )
    engines = [ENGINES[OURS_LIVE], ENGINES["polars"], PAIR]
    measurer.measure_all(engines, [QUERIES[name] for name in LARGE_QUERIES])


def write_page(store: Store) -> None:
    """Below `build/bench`; in `docs`, too, where it is whole."""
    found = Found(
        cases={name: store.case(name) for name in LIVE_CASES if store.has(name)},
        latencies={name: store.load(name) for name in store.names() if name.endswith(("_committed", "_shown"))},
        realtime=store.load("realtime") if store.has("realtime") else {},
        queries=load(store.results("queries")),
        large=load(store.results(LARGE)),
        abouts=[*store.abouts()],
        now=about(),
    )
    page = document(found)
    folders = [BUILD, *([ROOT / "docs"] if found.is_whole(LIVE_CASES, EVENTS, EVENTS * LARGE_FACTOR) else [])]
    for folder in folders:
        (folder / "benchmarks-live.md").write_text(page)
    print(f"\n{page}\nwritten to {', '.join(str(folder.relative_to(ROOT)) for folder in folders)}")


if __name__ == "__main__":
    sys.exit(main())
