"""How benchmarks take turns, and start processes that time themselves."""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from ..modules import ENVIRONMENT, module_command
from .processes import BenchError, inherited_environment

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


def run_module(module: str, *arguments: object, build: Path) -> None:
    """Run a module to its end in the folder `build`."""
    command = module_command(module, *arguments)
    environment = inherited_environment() | ENVIRONMENT | {"PYTHONPYCACHEPREFIX": str(build / "pycache")}
    done = subprocess.run(command, cwd=build, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"{module} failed with exit code {done.returncode}:\n{done.stdout}{done.stderr}")
