"""Measures topics beside Structured Streaming, Bytewax and a bare loop: `python -m benchmarks.kafka --help`.

`smoke` takes a few thousand messages: answers are checked, times are not.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from arroyo_kafka.broker import running_broker

from ..modules import ROOT
from ..nexmark.dataset import prepare
from ..nexmark.results import Results, save
from ..nexmark.running import positive
from .cases import CASES, ENGINES, FORMATS, OURS, PEER, Case, Engine
from .latency import Latency
from .latency import measure as measure_latency
from .measuring import BUILD, Measurer
from .page import Measured, document

DOCUMENT = ROOT / "docs" / "benchmarks-kafka.md"
DEFAULT_ROWS = 1_000_000
#: Five seconds of event time, so that some windows end.
SMOKE_ROWS = 50_000
SMOKE_LATENCY_S = 2
#: 46 of 50 events are bids.
EVENTS_PER_BID = 50 / 46
#: Whose latency is measured.
STREAMING = (OURS, PEER)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kafka", description=__doc__)
    parser.add_argument("what", nargs="?", choices=["all", "smoke"], default="all")
    parser.add_argument("--rows", type=positive, default=DEFAULT_ROWS, help="messages of each topic")
    parser.add_argument("--runs", type=positive, default=3, help="runs of every engine in every case")
    parser.add_argument("--cases", nargs="+", choices=[case.name for case in CASES], help="only these")
    parser.add_argument("--engines", nargs="+", choices=list(ENGINES), help="only these")
    parser.add_argument("--no-latency", action="store_true", help="leave latency out")
    args = parser.parse_args(arguments)
    cases = [case for case in CASES if args.cases is None or case.name in args.cases]
    engines = [engine for engine in ENGINES.values() if args.engines is None or engine.name in args.engines]
    is_smoke = args.what == "smoke"
    rows, runs = (SMOKE_ROWS, 1) if is_smoke else (args.rows, args.runs)
    load = os.getloadavg()[0]
    with running_broker() as broker:
        measurer = Measurer(
            servers=broker.bootstrap_servers, dataset=prepare(BUILD / "data", round(rows * EVENTS_PER_BID))
        )
        measurer.fill([format for format in FORMATS if any(case.format == format for case in cases)])
        results = measurer.measure_all(cases, engines, runs=runs)
        asked = [] if args.no_latency else [engine for engine in engines if engine.name in STREAMING]
        latencies = _latencies(measurer, asked, is_smoke=is_smoke)
    if is_smoke:
        return _verdict(results, latencies)
    measured = Measured(
        command=" ".join(["python -m benchmarks.kafka", *(arguments or sys.argv[1:])]),
        rows=measurer.rows,
        runs=runs,
        load=load,
        results=results,
        latencies=latencies,
        sizes=measurer.sizes,
    )
    page = document(measured)
    for result in results:
        save(BUILD / "results", result)
    (BUILD / "benchmarks-kafka.md").write_text(page)
    if rows >= DEFAULT_ROWS and _is_whole(cases, engines) and latencies:
        DOCUMENT.write_text(page)
    print(f"\n{page}")
    return 0


def _is_whole(cases: Sequence[Case], engines: Sequence[Engine]) -> bool:
    return len(cases) == len(CASES) and len(engines) == len(ENGINES)


def _latencies(measurer: Measurer, engines: Sequence[Engine], *, is_smoke: bool) -> list[Latency]:
    found = []
    for engine in engines:
        found.append(measure_latency(measurer, engine, **({"seconds": SMOKE_LATENCY_S} if is_smoke else {})))
        print(f"latency {found[-1]}", flush=True)
    return found


def _verdict(results: Results, latencies: Sequence[Latency]) -> int:
    """0 unless an answer is wrong; an engine that cannot be had here is no mistake."""
    wrong = [found.wrong for found in [*results, *latencies] if found.wrong]
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
