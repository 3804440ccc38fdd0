"""Measures what an epoch costs, in ratios within one run: `python -m benchmarks.epochs --help`.

Results accumulate in `build/bench/epochs`; `python -m benchmarks.nexmark report` makes `docs/benchmarks.md` from them.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from ..modules import ENVIRONMENT, ROOT, module_command
from .cases import CASES, RESULTS, section

BUILD = ROOT / "build" / "bench_epochs"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.epochs", description=__doc__)
    parser.add_argument("only", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--missing", action="store_true", help="only what has not been measured yet")
    # How a case is started in a process of its own.
    parser.add_argument("--measure", nargs=2, metavar=("CASE", "FILE"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        return _measure(*args.measure)
    unknown = set(args.only) - set(CASES)
    if unknown:
        parser.error(f"there is no case {', '.join(sorted(unknown))}")
    for name in args.only or CASES:
        if not args.missing or not (RESULTS / f"{name}.json").exists():
            _run(name)
    return 0


def _measure(module: str, file: str) -> int:
    folder = Path(file).parent
    Path(file).write_text(json.dumps(importlib.import_module(f".{module}", __package__).measure(folder)))
    return 0


def _run(name: str) -> None:
    folder = BUILD / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    file = folder / "seconds.json"
    command = module_command(__package__, "--measure", name, file)
    environment = os.environ | ENVIRONMENT
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stdout}{done.stderr}")
    RESULTS.mkdir(parents=True, exist_ok=True)
    shutil.copy(file, RESULTS / f"{name}.json")
    print(section(CASES[name], json.loads(file.read_text())), "\n", flush=True)
    shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
