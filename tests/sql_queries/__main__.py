"""`python -m tests.sql_queries --count N --seed S`: checks random queries against DuckDB, and says which are wrong."""

from __future__ import annotations

import argparse
import sys
import time

from .checking import Finding, Verdict
from .generator import make_query
from .runs import Tally, check_part, run
from .syntax import Dialect

#: How often it says how far it is.
_REPORT_SECONDS = 10
_SHOWN_REFUSALS = 12


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sql_queries", description=__doc__)
    parser.add_argument("--count", type=int, default=1_000, help="how many queries (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of all queries of this run (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="the number of the first one (default: %(default)s)")
    parser.add_argument("--only", type=int, help="show and check the one with this number")
    parser.add_argument("--processes", type=int, help="how many at the same time (default: one for each core)")
    args = parser.parse_args()
    if args.only is not None:
        query = make_query(args.seed, args.only)
        print(f"{query.text(Dialect.OURS)}\n\nin DuckDB:\n{query.text(Dialect.DUCKDB)}\n")
        return _summary(check_part(args.seed, args.only, args.only + 1), args.seed, 0)
    return _check(args.seed, args.first, args.first + args.count, args.processes)


def _check(seed: int, first: int, last: int, processes: int | None) -> int:
    begun = shown = time.monotonic()
    tally = Tally()
    for part in run(seed, first, last, processes=processes):
        tally.add(part)
        for finding in part.findings:
            print(f"{_described(finding, seed)}\n", flush=True)
        if time.monotonic() - shown > _REPORT_SECONDS:
            shown = time.monotonic()
            progress = f"{tally.count} of {last - first}, {tally.count / (shown - begun):.1f} a second"
            print(f"{progress}, {len(tally.findings)} wrong", file=sys.stderr, flush=True)
    tally_without = Tally(tally.verdicts, tally.refusals, [])
    _summary(tally_without, seed, time.monotonic() - begun)
    return 1 if tally.findings else 0


def _summary(tally: Tally, seed: int, seconds: float) -> int:
    for finding in tally.findings:
        print(f"{_described(finding, seed)}\n")
    for message, count in tally.refusals.most_common(_SHOWN_REFUSALS):
        print(f"{count} refused: {message}")
    counts = ", ".join(f"{tally.verdicts[verdict]} {verdict.value}" for verdict in Verdict)
    print(f"{tally.count} queries in {seconds:.0f} s: {counts}")
    return 1 if tally.findings else 0


def _described(finding: Finding, seed: int) -> str:
    other = f"\n-- duckdb:\n{finding.duckdb}" if finding.duckdb != finding.sql else ""
    repeat = f"python -m tests.sql_queries --seed {seed} --only {finding.number}"
    return f"{finding.verdict.value}:\n{finding.sql}{other}\n{finding.text}\n  repeat: {repeat}"


if __name__ == "__main__":
    raise SystemExit(main())
