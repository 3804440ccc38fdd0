"""Measures what SQL costs beside YAML on the queries of Nexmark; makes `docs/benchmarks-sql.md`.

make bench-sql                                          everything, some minutes
make bench-sql BENCH_ARGS="--events 200000 --runs 1"    a look; the page stays below build
make bench-sql BENCH_ARGS="q5 q8"                       some queries
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from statistics import median

from ..modules import ROOT
from ..nexmark.running import positive
from .measure import measure
from .page import Measured, document
from .sides import ASKED, SQL, YAML

BUILD = ROOT / "build" / "bench_sql"
DOCUMENT = ROOT / "docs" / "benchmarks-sql.md"
DEFAULT_EVENTS = 500_000
DEFAULT_RUNS = 3


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.sql", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("only", nargs="*", metavar="QUERY", help=", ".join(ASKED))
    parser.add_argument("--events", type=positive, default=DEFAULT_EVENTS, help="events of all kinds; 500,000")
    parser.add_argument("--runs", type=positive, default=DEFAULT_RUNS, help="runs of each side; 3")
    args = parser.parse_args()
    unknown = set(args.only) - set(ASKED)
    if unknown:
        parser.error(f"there is no query {', '.join(sorted(unknown))}")
    BUILD.mkdir(parents=True, exist_ok=True)
    found = []
    for query in args.only or ASKED:
        one = measured(query, events=args.events, runs=args.runs)
        found.append(one)
        medians = {side: median(one.seconds[side]) for side in (YAML, SQL)}
        print(f"{query:4} yaml {medians[YAML]:6.2f} s  sql {medians[SQL]:6.2f} s  {one.ratio:5.2f}", flush=True)
    page = document(found, events=args.events)
    is_full = not args.only and args.events >= DEFAULT_EVENTS and args.runs >= DEFAULT_RUNS
    for path in [BUILD / DOCUMENT.name, *([DOCUMENT] if is_full else [])]:
        path.write_text(page)
    print(f"\n{page}")
    return 0


def measured(query: str, *, events: int, runs: int) -> Measured:
    """One query; a wrong answer raises `WrongAnswerError`."""
    with tempfile.TemporaryDirectory(prefix="run-", dir=BUILD) as name:
        return measure(query, BUILD / "data", events=events, runs=runs, folder=Path(name))


if __name__ == "__main__":
    sys.exit(main())
