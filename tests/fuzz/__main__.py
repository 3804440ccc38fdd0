"""`python -m tests.fuzz TARGET... --seconds N`: fuzzes targets one after the other, and says what does harm."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .runs import Report, fuzz
from .targets import TARGETS, Target


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"default: all of {', '.join(TARGETS)}")
    parser.add_argument("--seconds", type=int, default=60, help="for each target (default: %(default)s)")
    parser.add_argument("--input", type=Path, metavar="FILE", help="run this input only, and show what comes of it")
    args = parser.parse_args()
    unknown = sorted(set(args.targets) - set(TARGETS))
    if unknown:
        parser.error(f"there is no target {unknown[0]!r} (there are: {', '.join(TARGETS)})")
    chosen = [TARGETS[name] for name in args.targets or TARGETS]
    if args.input is not None:
        if len(args.targets) != 1:
            parser.error("--input needs one target")
        return _repeat(chosen[0], args.input)
    reports = [_fuzz(target, args.seconds) for target in chosen]
    print("\n".join(map(str, reports)))
    return 1 if any(report.findings for report in reports) else 0


def _fuzz(target: Target, seconds: int) -> Report:
    print(f"{target.name}: {target.what}", file=sys.stderr, flush=True)
    for event in fuzz(target, seconds):
        if isinstance(event, Report):
            return event
        print(f"{event.target}: {event.what}\n  repeat: {event.repeat}", flush=True)
    raise AssertionError("a report ends every run")


def _repeat(target: Target, path: Path) -> int:
    from .problems import find_problem

    problem = find_problem(target.load(), path.read_bytes())
    print("nothing is wrong" if problem is None else problem.text)
    return 0 if problem is None else 1


if __name__ == "__main__":
    raise SystemExit(main())
