"""Runs mutants in worker processes, one at a time, and begins another where one dies."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass

from .mutants import ROOT

#: After so many a worker makes room for another.
PER_WORKER = 20_000
#: A mutant that takes longer has not even been stopped by its own limit.
STUCK_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Failure:
    """A mutant that did harm."""

    seed: int
    number: int
    problem: str

    @property
    def repeat(self) -> str:
        return f"python -m tests.mutations --seed {self.seed} --only {self.number}"


@dataclass(frozen=True, slots=True)
class Done:
    """How many mutants are behind us."""

    count: int


def run(seed: int, first: int, last: int) -> Iterator[Failure | Done]:
    """Plan the mutants from `first` up to `last`, and report failures and how far it is."""
    at = first
    while at < last:
        stop = min(last, at + PER_WORKER)
        for event in _run_worker(seed, at, stop):
            if isinstance(event, Failure):
                yield event
            else:
                at = event.count
                yield Done(at - first)


def _run_worker(seed: int, first: int, stop: int) -> Iterator[Failure | Done]:
    """The last event is `Done` with the number to go on with."""
    command = [sys.executable, "-m", "tests.mutations.worker", str(seed), str(first), str(stop)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    number, is_whole = first - 1, False
    guard = threading.Timer(STUCK_SECONDS, process.kill)
    guard.start()
    for line in process.stdout:
        if line.strip().isdigit():
            number = int(line)
            guard.cancel()
            guard = threading.Timer(STUCK_SECONDS, process.kill)
            guard.start()
            if number % 100 == 0:
                yield Done(number)
        elif line.startswith("{"):
            found = json.loads(line)
            yield from (Failure(seed, found["number"], problem) for problem in found["problems"])
        else:
            is_whole = line.strip() == "done"
    guard.cancel()
    assert process.stderr is not None
    errors = process.stderr.read()
    process.stderr.close()
    process.stdout.close()
    code = process.wait()
    if is_whole and code == 0:
        yield Done(stop)
    elif number < first:
        raise RuntimeError(f"the worker does not start: {errors[-2000:]}")
    else:
        yield Failure(seed, number, f"the worker ended with {code}: {errors[-2000:]}")
        yield Done(number + 1)
