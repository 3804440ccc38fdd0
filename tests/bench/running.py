"""How benchmarks take turns, and start processes that time themselves."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from processes import BenchError, inherited_environment

ItemT = TypeVar("ItemT")


def positive(text: str) -> int:
    """For options of the command line."""
    number = int(text.replace("_", ""))
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not positive")
    return number


def rotated(chosen: Sequence[ItemT], number: int) -> list[ItemT]:
    """Another item is first in every round, so that none always runs on the warmest machine."""
    start = number % max(len(chosen), 1)
    return [*chosen[start:], *chosen[:start]]


def run_process(script: Path, *arguments: object, build: Path, search: Sequence[Path] = ()) -> None:
    """Run a script to its end in the folder `build`; it finds modules in the folders `search`, too."""
    command = [sys.executable, str(script), *map(str, arguments)]
    environment = inherited_environment() | {"PYTHONPYCACHEPREFIX": str(build / "pycache")}
    if search:
        environment["PYTHONPATH"] = os.pathsep.join(map(str, search))
    done = subprocess.run(command, cwd=build, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"{script.name} failed with exit code {done.returncode}:\n{done.stdout}{done.stderr}")
