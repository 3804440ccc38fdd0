"""Measures every window and join beside DuckDB and Structured Streaming: `python -m benchmarks.operators --help`."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path

from ..modules import ROOT
from ..nexmark.dataset import prepare
from ..nexmark.machine import about
from ..nexmark.results import Result, Results, Run, save
from ..nexmark.running import positive, rotated, run_module
from ..nexmark.tasks import Task, Timing
from .cases import CASES, ENGINES, Case
from .checking import Checker
from .page import Measured, Memory, document, versions

BUILD = ROOT / "build" / "bench_operators"
DOCUMENT = ROOT / "docs" / "benchmarks-operators.md"
DEFAULT_ROWS = 5_000_000
DEFAULT_KEYS = 1_000_000
WARM_UP_ROWS = 20_000
#: 46 of 50 events are bids.
EVENTS_PER_BID = 50 / 46


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.operators", description=__doc__)
    parser.add_argument("only", nargs="*", metavar="CASE", help=", ".join(case.name for case in CASES))
    parser.add_argument("--rows", type=positive, default=DEFAULT_ROWS, help="bids that are read")
    parser.add_argument("--runs", type=positive, default=3, help="runs of every engine in every case")
    parser.add_argument("--keys", type=positive, default=DEFAULT_KEYS, help="keys of the state that is measured")
    args = parser.parse_args()
    unknown = set(args.only) - {case.name for case in CASES}
    if unknown:
        parser.error(f"there is no case {', '.join(sorted(unknown))}")
    chosen = [case for case in CASES if not args.only or case.name in args.only]
    is_full = not args.only and args.rows >= DEFAULT_ROWS and args.keys >= DEFAULT_KEYS
    BUILD.mkdir(parents=True, exist_ok=True)
    measure_all(chosen, rows=WARM_UP_ROWS, runs=1)
    measured = measure_all(chosen, rows=args.rows, runs=args.runs)
    measured.memory = [measure_memory(case, args.keys) for case in chosen]
    page = document(measured)
    for result in measured.results:
        save(BUILD / "results", result)
    (BUILD / "benchmarks-operators.md").write_text(page)
    if is_full:
        DOCUMENT.write_text(page)
    print(f"\n{page}")
    return 0


def measure_all(cases: list[Case], *, rows: int, runs: int) -> Measured:
    """Run every engine in every case so many times, in turn."""
    events = round(rows * EVENTS_PER_BID)
    dataset = prepare(BUILD / "data", events)
    data = dataset.folder
    checker = Checker(data, BUILD / "right" / data.name)
    rows_in = {case.name: dataset.rows(*case.tables) for case in cases}
    found = {
        (case.name, engine): Result(
            engine=engine,
            query=case.name,
            events=events,
            rows=rows_in[case.name],
            about={**about(), "versions": versions()},
        )
        for case in cases
        for engine in ENGINES
    }
    for number in range(runs):
        for case in cases:
            for engine in rotated(ENGINES, number):
                run = measure(case, engine, data, checker)
                before = found[case.name, engine]
                found[case.name, engine] = replace(before, runs=(*before.runs, run))
                rate = rows_in[case.name] / run.job_s
                print(
                    f"run {number + 1}  {case.name:14} {engine:22} {run.job_s:7.2f} s  {rate:12,.0f} rows/s", flush=True
                )
    return Measured(
        results=Results(found.values()),
        rows_in=rows_in,
        rows_out={case.name: checker.right(case).rows for case in cases},
    )


def measure(case: Case, engine: str, data: Path, checker: Checker) -> Run:
    """Run one engine in a process of its own, and check its answer."""
    folder = BUILD / "run"
    shutil.rmtree(folder, ignore_errors=True)
    scratch, answer = folder / "scratch", folder / "answer"
    scratch.mkdir(parents=True)
    Task(case=case.name, data=str(data), answer=str(answer), scratch=str(scratch)).write(folder / "task.json")
    started = time.perf_counter()
    run_module(f"{__package__}.on_{engine}", folder / "task.json", folder / "timing.json", build=BUILD)
    wall_s = time.perf_counter() - started
    checker.check(case, engine, answer)
    timing = Timing.read(folder / "timing.json")
    shutil.rmtree(folder)
    return Run(job_s=timing.job_s, process_s=wall_s, epochs=timing.epochs)


def measure_memory(case: Case, keys: int) -> Memory:
    """Make the state in one process, and open it in another, which has used no memory before."""
    folder = BUILD / "state"
    shutil.rmtree(folder, ignore_errors=True)
    result = BUILD / "memory.json"
    for step in ("fill", "load"):
        run_module(f"{__package__}.state_memory", step, case.name, keys, folder, result, build=BUILD)
    found = json.loads(result.read_text())
    shutil.rmtree(folder)
    print(f"memory  {case.name:14} {found['grown_bytes'] / found['arrow_bytes']:6.2f} times the Arrow size", flush=True)
    return Memory(case=case.name, keys=keys, **found)


if __name__ == "__main__":
    sys.exit(main())
