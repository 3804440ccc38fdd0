"""`python -m tests.soak --minutes 60`: runs a job for long, and says whether anything grew; see docs/chaos.md."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from .soak import soak
from .works import WORKS

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "soak"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--job", choices=WORKS, default="windows", help="which (default: windows)")
    parser.add_argument("--minutes", type=float, default=60.0, help="how long, after the first epoch (default: 60)")
    parser.add_argument("--sample", type=float, default=5.0, metavar="SECONDS", help="between two looks (default: 5)")
    parser.add_argument("--plot", type=Path, default=BUILD / "soak.svg", help="where the plot goes")
    args = parser.parse_args()
    folder = BUILD / "run"
    shutil.rmtree(folder, ignore_errors=True)
    outcome = soak(WORKS[args.job], folder, duration_s=args.minutes * 60, sample_s=args.sample)
    outcome.save(BUILD / "soak.json", args.plot)
    print(outcome.report())
    problems = outcome.problems()
    if grown := outcome.grown():
        problems.append(f"more in the last quarter than in the first, by over 10 %: {', '.join(grown)}")
    for problem in problems:
        print(problem, file=sys.stderr)
    shutil.rmtree(folder)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
