"""Measures what user functions cost, in ratios within one run: `python -m benchmarks.udfs --help`."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from ..modules import ENVIRONMENT, ROOT, module_command

DOCUMENT = ROOT / "docs" / "benchmarks-udfs.md"


@dataclass(frozen=True, slots=True)
class Case:
    """A function that gives seconds by name: first ours, then what it is compared with, in `module`.

    `bounds` are the least speeds that ours is meant to have as parts of the others', in their order; None for no bound.
    """

    name: str
    module: str
    function: str
    title: str
    bounds: Sequence[float | None]


CASES = (
    Case("vectorised", "in_process", "vectorised", "A function of columns, 65,536 rows", (0.9,)),
    Case("scalar", "in_process", "scalar", "A function of one row (slug), 65,536 rows", (0.8, None)),
    Case("cheap", "in_process", "cheap_scalar", "A cheap function of one row (initials), 65,536 rows", (None, None)),
    Case("spark-vectorised", "on_spark", "vectorised", "A function of columns on Spark", (1.0, 1.0)),
    Case("spark-scalar", "on_spark", "scalar", "A function of one row on Spark", (1.0, 1.0)),
    Case("async", "on_spark", "asynchronous", "A call that waits for 20 ms", (None,)),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.udfs", description=__doc__)
    parser.add_argument("only", nargs="*", metavar="CASE", help=", ".join(case.name for case in CASES))
    parser.add_argument("--scale", type=float, default=1.0, help="a part of the rows and runs, to try it")
    # How a case is started in a process of its own.
    parser.add_argument("--measure", metavar="CASE", help=argparse.SUPPRESS)
    args = parser.parse_args()
    by_name = {case.name: case for case in CASES}
    if args.measure:
        case = by_name[args.measure]
        print(json.dumps(getattr(importlib.import_module(f".{case.module}", __package__), case.function)(args.scale)))
        return 0
    unknown = set(args.only) - set(by_name)
    if unknown:
        parser.error(f"there is no case {', '.join(sorted(unknown))}")
    chosen = [case for case in CASES if not args.only or case.name in args.only]
    sections = [_run(case, args.scale) for case in chosen]
    if len(chosen) == len(CASES) and args.scale == 1.0:
        DOCUMENT.write_text("\n".join([*_heading(), *sections]))
        print(f"written to {DOCUMENT.relative_to(ROOT)}")
    return 0


def _run(case: Case, scale: float) -> str:
    command = module_command(__package__, "--measure", case.name, "--scale", scale)
    environment = os.environ | ENVIRONMENT
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{case.name} failed:\n{done.stdout}{done.stderr}")
    section = _section(case, json.loads(done.stdout.splitlines()[-1]))
    print(section, flush=True)
    return section


def _section(case: Case, seconds: dict[str, list[float]]) -> str:
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    ours, *others = medians
    rows = [
        f"## {case.title}",
        "",
        "| | Median | Fastest | Slowest | Runs | Ours is |",
        "|---|---:|---:|---:|---:|---|",
    ]
    bounds = dict(zip(others, case.bounds, strict=True))
    for name, values in seconds.items():
        speed = ""
        if name != ours:
            ratio, bound = medians[name] / medians[ours], bounds[name]
            verdict = "" if bound is None else f" (bound {bound}: {'met' if ratio >= bound else 'NOT met'})"
            speed = f"{ratio:.2f} of its speed{verdict}"
        numbers = " | ".join(f"{value * 1000:,.1f} ms" for value in (medians[name], min(values), max(values)))
        rows.append(f"| {name} | {numbers} | {len(values)} | {speed} |")
    return "\n".join([*rows, ""])


def _heading() -> list[str]:
    return [
        "# What user functions cost",
        "",
        "Written by `make bench-udf`; do not edit. Each case is one process, and all sides of it run in turn on the",
        "same machine (2 cores). Speeds are ratios of medians: 2 of a speed is twice as fast. On Spark all sides read",
        "the same Parquet files and drop what they computed; times are of whole jobs in a session that is warm.",
        "",
    ]


if __name__ == "__main__":
    sys.exit(main())
