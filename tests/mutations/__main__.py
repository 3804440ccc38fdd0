"""`python -m tests.mutations --count N --seed S`: plans mutants of pipelines, and says which did harm."""

from __future__ import annotations

import argparse
import sys
import time

from .mutants import corpus, mutant
from .runs import Done, Failure, run

#: How often it says how far it is.
_REPORT_SECONDS = 10


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("--count", type=int, default=1_000, help="how many mutants (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of all mutants of this run (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="the number of the first one (default: %(default)s)")
    parser.add_argument("--only", type=int, help="show and plan the one with this number")
    parser.add_argument("--processes", type=int, help="how many at the same time (default: one for each core)")
    args = parser.parse_args()
    if args.only is not None:
        path, data = mutant(corpus(), args.seed, args.only)
        print(f"made from {path}:\n{data.decode(errors='backslashreplace')}\n")
        return _report(args.seed, args.only, args.only + 1, 1)
    return _report(args.seed, args.first, args.first + args.count, args.processes)


def _report(seed: int, first: int, last: int, processes: int | None) -> int:
    begun = shown = time.monotonic()
    failed: set[int] = set()
    done = Done(0)
    for event in run(seed, first, last, processes=processes):
        if isinstance(event, Failure):
            failed.add(event.number)
            print(f"{event.problem}\n  repeat: {event.repeat}\n", flush=True)
            continue
        done = event
        if time.monotonic() - shown > _REPORT_SECONDS:
            shown = time.monotonic()
            rate = done.count / (shown - begun)
            print(
                f"{done.count} of {last - first}, {rate:.0f} a second, {len(failed)} failed",
                file=sys.stderr,
                flush=True,
            )
    rate = done.count / (time.monotonic() - begun)
    each_ms = 1000 * done.cpu_seconds / max(done.count, 1)
    costs = f"{each_ms:.2f} ms of CPU each, at most {done.memory_bytes >> 20} MiB in a process"
    print(f"{done.count} mutants, {rate:.0f} a second, {len(failed)} failed, {costs}")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
