"""Runs mutants in worker processes, each one mutant at a time, and begins another where one dies."""

from __future__ import annotations

import json
import mmap
import os
import select
import struct
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .mutants import ROOT

#: After so many a worker makes room for another.
PER_WORKER = 20_000
#: A mutant that takes longer has not even been stopped by its own limit.
STUCK_SECONDS = 120
#: How a worker writes the number of its mutant.
POSITION = "q"


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
    """How many mutants are behind us; of the workers that have ended, the most memory of one and the time of all."""

    count: int
    memory_bytes: int = 0
    cpu_seconds: float = 0


class _Worker:
    """A process that plans the mutants from `first` up to `stop`."""

    def __init__(self, seed: int, first: int, stop: int) -> None:
        self.seed, self.first, self.stop = seed, first, stop
        self.memory_bytes, self.cpu_seconds = 0, 0.0
        self._seen, self._seen_at = first - 1, time.monotonic()
        self._is_whole = False
        self._rest = b""
        # A file, as nobody reads while it runs; closed at its end.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        # Memory of both: the worker says where it is for each mutant, and nobody need wake up for that.
        with tempfile.TemporaryFile() as shared:
            shared.write(struct.pack(POSITION, first - 1))
            shared.flush()
            self._position = mmap.mmap(shared.fileno(), 0)
            command = [sys.executable, "-m", "tests.mutations.worker", *map(str, (seed, first, stop, shared.fileno()))]
            self._process = subprocess.Popen(
                command, cwd=ROOT, stdout=subprocess.PIPE, stderr=self._errors, pass_fds=[shared.fileno()]
            )
        assert self._process.stdout is not None
        self.output = self._process.stdout.fileno()

    @property
    def number(self) -> int:
        """The mutant that it is at; those before it are done."""
        (number,) = struct.unpack_from(POSITION, self._position)
        return int(number)

    def is_stuck(self) -> bool:
        number, now = self.number, time.monotonic()
        if number != self._seen:
            self._seen, self._seen_at = number, now
        return now - self._seen_at > STUCK_SECONDS

    def read(self) -> Iterator[Failure] | None:
        """The failures of what it wrote; None when it has ended."""
        data = os.read(self.output, 1 << 16)
        *lines, self._rest = (self._rest + data).split(b"\n")
        return (failure for line in lines for failure in self._failures(line)) if data else None

    def _failures(self, line: bytes) -> Iterator[Failure]:
        found = json.loads(line)
        self._is_whole = "memory" in found
        self.memory_bytes, self.cpu_seconds = found.get("memory", 0), found.get("cpu", 0.0)
        yield from (Failure(self.seed, found["number"], problem) for problem in found.get("problems", ()))

    def is_over(self) -> bool:
        return self._process.poll() is not None

    def kill(self) -> None:
        self._process.kill()

    def end(self) -> Failure | None:
        """Wait for it; the failure where it did not do all. Raises `RuntimeError` where it did not begin."""
        code, errors = self.close()
        if self._is_whole and code == 0:
            return None
        if self.number < self.first:
            raise RuntimeError(f"the worker does not start: {errors}")
        return Failure(self.seed, self.number, f"the worker ended with {code}: {errors}")

    def close(self) -> tuple[int, str]:
        """Wait for it: its exit code, and the end of its errors."""
        code = self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        with self._errors:
            self._errors.seek(0)
            return code, self._errors.read()[-2000:].decode(errors="replace")


def run(seed: int, first: int, last: int, *, processes: int | None = None) -> Iterator[Failure | Done]:
    """Plan the mutants from `first` up to `last`, and report failures and how far it is."""
    processes = processes or os.cpu_count() or 1
    size = max(1, min(PER_WORKER, -(-(last - first) // processes)))
    left = deque((at, min(last, at + size)) for at in range(first, last, size))
    workers: dict[int, _Worker] = {}
    ended, memory_bytes, cpu_seconds = 0, 0, 0.0
    try:
        while left or workers:
            while left and len(workers) < processes:
                worker = _Worker(seed, *left.popleft())
                workers[worker.output] = worker
            for worker in _ready(list(workers.values())):
                failures = worker.read()
                if failures is not None:
                    yield from failures
                    continue
                del workers[worker.output]
                failure = worker.end()
                memory_bytes = max(memory_bytes, worker.memory_bytes)
                cpu_seconds += worker.cpu_seconds
                ended += (worker.stop if failure is None else worker.number + 1) - worker.first
                if failure is not None:
                    yield failure
                    if worker.number + 1 < worker.stop:
                        left.append((worker.number + 1, worker.stop))
            at_work = sum(max(0, worker.number - worker.first) for worker in workers.values())
            yield Done(ended + at_work, memory_bytes, cpu_seconds)
    finally:
        for worker in workers.values():
            worker.kill()
            worker.close()


def _ready(workers: Sequence[_Worker]) -> list[_Worker]:
    """Those that wrote something or ended; those that are stuck are killed, and end."""
    readable, _, _ = select.select([worker.output for worker in workers], [], [], 1)
    for worker in workers:
        if worker.is_stuck():
            worker.kill()
    return [worker for worker in workers if worker.output in readable]
