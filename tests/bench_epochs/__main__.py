"""Measures what an epoch costs, in ratios within one run: `python tests/bench_epochs --help`."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "bench_epochs"
DOCUMENT = ROOT / "docs" / "benchmarks-epochs.md"


@dataclass(frozen=True, slots=True)
class Case:
    """A module with `measure(folder)`, which gives seconds by name: first ours, then what it is compared with."""

    module: str
    title: str
    #: The ratio of the two medians is meant to be at most this; None for a comparison without a bound.
    bound: float | None


CASES = (
    Case("bare", "An epoch of two waves and 10 rows, beside a bare Spark job of the same shape", 1.3),
    Case("small", "A stateful epoch of 1,000 rows, beside the same micro-batch of Structured Streaming (RocksDB)", 1.0),
    Case("large", "An epoch that changes 1,000 keys, with 10 million keys of state and with 100 thousand", 1.3),
    Case("overhead", "The same 40 million events with a checkpoint every 2 s, and in one epoch", 1.1),
    Case("recovery", "Recovery of a killed driver, beside a plain start of Spark", None),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python tests/bench_epochs", description=__doc__)
    parser.add_argument("only", nargs="*", metavar="CASE", help=", ".join(case.module for case in CASES))
    # How a case is started in a process of its own.
    parser.add_argument("--measure", nargs=2, metavar=("CASE", "FILE"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        return _measure(*args.measure)
    unknown = set(args.only) - {case.module for case in CASES}
    if unknown:
        parser.error(f"there is no case {', '.join(sorted(unknown))}")
    chosen = [case for case in CASES if not args.only or case.module in args.only]
    sections = [_run(case) for case in chosen]
    if len(chosen) == len(CASES):
        DOCUMENT.write_text("\n".join([*_heading(), *sections]))
        print(f"written to {DOCUMENT.relative_to(ROOT)}")
    return 0


def _measure(module: str, file: str) -> int:
    folder = Path(file).parent
    Path(file).write_text(json.dumps(importlib.import_module(module).measure(folder)))
    return 0


def _run(case: Case) -> str:
    folder = BUILD / case.module
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    file = folder / "seconds.json"
    command = [sys.executable, str(Path(__file__).parent), "--measure", case.module, str(file)]
    # Spark's workers import the case too.
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{case.module} failed:\n{done.stdout}{done.stderr}")
    section = _section(case, json.loads(file.read_text()))
    shutil.rmtree(folder)
    print(section, flush=True)
    return section


def _section(case: Case, seconds: dict[str, list[float]]) -> str:
    rows = [f"## {case.title}", "", "| | Median | Fastest | Slowest | Runs |", "|---|---:|---:|---:|---:|"]
    for name, values in seconds.items():
        middle, least, most = statistics.median(values), min(values), max(values)
        rows.append(f"| {name} | {middle * 1000:,.0f} ms | {least * 1000:,.0f} | {most * 1000:,.0f} | {len(values)} |")
    ours, other = (statistics.median(values) for values in seconds.values())
    bound = (
        ""
        if case.bound is None
        else f"; the bound is {case.bound}: {'met' if ours / other <= case.bound else 'NOT met'}"
    )
    return "\n".join([*rows, "", f"Ratio of the medians: {ours / other:.2f}{bound}.", ""])


def _heading() -> list[str]:
    return [
        "# What an epoch costs",
        "",
        "Written by `make bench-epochs`; do not edit. Each case is one process, and both sides of it run in turn on",
        "the same machine (2 cores). Epochs are timed from one commit to the next, since an epoch is published while",
        "the next one runs; the first ones, which start workers and compile code, are left out.",
        "",
    ]


if __name__ == "__main__":
    sys.exit(main())
