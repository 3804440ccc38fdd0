"""Measures Arroyo beside a bare pyarrow loop and Structured Streaming: `python tests/bench --help`."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from pathlib import Path

from answers import Digest, check, expected
from cases import CASES, ENGINES, Task, Timing
from dataset import Dataset, prepare
from report import document
from results import Results, Run
from running import positive, rotated, run_process

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "bench"
#: 46 of 50 events are bids: 10 million of them.
DEFAULT_EVENTS = 10_869_600
WARM_UP_EVENTS = 20_000
#: How the files of an engine's answer tell which subtask wrote them.
PARTS = {
    "arroyo": r"-\d{5}-(\d{3})-\d+-[0-9a-f]+\.parquet$",
    "pyarrow": r"part-(\d{5})-",
    "structured_streaming": r"part-(\d{5})-",
}


def main() -> int:
    args = parse()
    chosen = [(case, engine) for case in CASES for engine in ENGINES if _is_chosen(args.only, case, engine)]
    if not chosen:
        print(f"nothing is called {args.only!r}: choose among {', '.join((*CASES, *ENGINES))}", file=sys.stderr)
        return 2
    results = measure_all(chosen, events=args.events, runs=args.runs)
    results.runs.sort(key=lambda run: (CASES.index(run.case), ENGINES.index(run.engine)))
    write(results, is_full=args.only is None and args.events == DEFAULT_EVENTS)
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python tests/bench", description=__doc__)
    parser.add_argument(
        "--events", type=positive, default=DEFAULT_EVENTS, help="Nexmark events, 92%% of which are bids"
    )
    parser.add_argument("--runs", type=positive, default=3, help="runs of every engine in every case")
    parser.add_argument("--only", metavar="NAME", help="a case or an engine")
    return parser.parse_args()


def _is_chosen(only: str | None, case: str, engine: str) -> bool:
    return only in (None, case, engine)


def measure_all(chosen: list[tuple[str, str]], *, events: int, runs: int) -> Results:
    """Run everything chosen `runs` times, in turn."""
    warm_up(chosen)
    dataset = prepare(BUILD / "data", events)
    right = expected(dataset.folder)
    results = Results(events=events, rows=dataset.rows(), answer_rows=right.rows, input_bytes=dataset.size_bytes())
    for number in range(runs):
        for case, engine in rotated(chosen, number):
            run = measure(case, engine, dataset, right)
            results.runs.append(run)
            rate = results.rows / run.job_s
            print(f"run {number + 1}  {case:8} {engine:22} {run.job_s:7.2f} s  {rate:12,.0f} rows/s", flush=True)
    return results


def warm_up(chosen: list[tuple[str, str]]) -> None:
    """Run everything once on a little data, so that nobody's first run compiles Python's modules."""
    dataset = prepare(BUILD / "data", WARM_UP_EVENTS)
    right = expected(dataset.folder)
    for case, engine in chosen:
        measure(case, engine, dataset, right)


def measure(case: str, engine: str, dataset: Dataset, right: Digest) -> Run:
    """Run one engine in a process of its own, and check its answer."""
    folder = BUILD / "run"
    shutil.rmtree(folder, ignore_errors=True)
    scratch = folder / "scratch"
    scratch.mkdir(parents=True)
    answer = folder / "answer"
    task = Task(case=case, data=str(dataset.folder), answer=str(answer), scratch=str(scratch))
    task.write(folder / "task.json")
    started = time.perf_counter()
    script = Path(__file__).with_name(f"engine_{engine}.py")
    run_process(script, folder / "task.json", folder / "timing.json", build=BUILD)
    wall_s = time.perf_counter() - started
    check(answer, right, part_pattern=PARTS[engine] if task.is_shuffled else None)
    timing = Timing.read(folder / "timing.json")
    shutil.rmtree(folder)
    return Run(case=case, engine=engine, job_s=timing.job_s, wall_s=wall_s, epochs=timing.epochs)


def write(results: Results, *, is_full: bool) -> None:
    """JSON and the page below `build/bench`; the page goes to `docs` only from a full run."""
    page = document(results)
    BUILD.mkdir(parents=True, exist_ok=True)
    results.write_json(BUILD / "results.json")
    (BUILD / "benchmarks.md").write_text(page)
    if is_full:
        (ROOT / "docs" / "benchmarks.md").write_text(page)
    print(f"\n{page}")


if __name__ == "__main__":
    sys.exit(main())
