"""`python -m tests.scale [CASE...]`: jobs at the edges of size, each in processes of its own; see docs/chaos.md."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from dataclasses import asdict
from pathlib import Path

from .edges import EDGES, Size
from .measuring import measure
from .report import report

BUILD = Path(__file__).resolve().parents[2] / "build" / "scale"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.scale", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(EDGES))
    parser.add_argument("--share", type=float, default=1.0, help="of the real size, for a try (default: 1)")
    args = parser.parse_args()
    unknown = sorted(set(args.cases) - set(EDGES))
    if unknown:
        parser.error(f"there is no case {', '.join(unknown)}; there are {', '.join(EDGES)}")
    runs = []
    for name in args.cases or EDGES:
        folder = BUILD / name
        shutil.rmtree(folder, ignore_errors=True)
        print(f"{EDGES[name].title} ...", flush=True)
        runs.append(measure(EDGES[name], Size(args.share), folder))
        # Gigabytes; what is needed to understand a failure is in the report.
        shutil.rmtree(folder)
        print(report(runs[-1:]), flush=True)
    BUILD.mkdir(parents=True, exist_ok=True)
    (BUILD / "scale.json").write_text(json.dumps([asdict(run) for run in runs]))
    print(report(runs))
    return 1 if any(run.problem for run in runs) else 0


if __name__ == "__main__":
    sys.exit(main())
