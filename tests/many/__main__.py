"""`python -m tests.many --pipelines 20 --minutes 20`: runs pipelines in one session; see docs/many-pipelines.md."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from .many import run_many
from .report import report

BUILD = Path(__file__).resolve().parents[2] / "build" / "many"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.many", description=__doc__)
    parser.add_argument(
        "--pipelines", type=int, nargs="+", default=[20], metavar="N", help="how many; several numbers are as many runs"
    )
    parser.add_argument("--minutes", type=float, default=20.0, help="how long, after the first epochs (default: 20)")
    parser.add_argument("--interval", default="10s", help="of the epochs of each pipeline (default: 10s)")
    parser.add_argument("--sample", type=float, default=5.0, metavar="SECONDS", help="between two looks (default: 5)")
    parser.add_argument("--no-harm", action="store_true", help="kill, fail and stop nothing on the way")
    args = parser.parse_args()
    outcomes = []
    for count in args.pipelines:
        folder = BUILD / f"run-{count}"
        shutil.rmtree(folder, ignore_errors=True)
        outcomes.append(
            run_many(
                folder,
                count=count,
                duration_s=args.minutes * 60,
                interval=args.interval,
                sample_s=args.sample,
                does_harm=not args.no_harm,
            )
        )
        print(f"{count} pipelines have run", file=sys.stderr, flush=True)
    print(report(outcomes))
    problems = [problem for outcome in outcomes for problem in outcome.problems()]
    for problem in problems:
        print(problem, file=sys.stderr)
    if not problems:
        shutil.rmtree(BUILD)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
