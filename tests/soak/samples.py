"""What is looked at while the job runs: its processes and its folders, from outside; on Linux."""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.nexmark.processes import pss_bytes, session_cpu_s

from ..integration.processes import Process, session_processes
from .job import Places

DRIVER, JVM, DAEMON, WORKER, OTHER = "driver", "JVM", "Python daemon", "Python workers", "other processes"
KINDS = (DRIVER, JVM, DAEMON, WORKER, OTHER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One look, `time_s` after the start."""

    time_s: float
    #: By kind of process: proportional set sizes, open descriptors and numbers of processes, all in sums.
    pss_bytes: dict[str, int]
    descriptors: dict[str, int]
    processes: dict[str, int]
    #: Of all processes so far, those that have ended too.
    cpu_s: float
    #: By Python worker.
    worker_cpu_s: dict[int, float]
    #: By folder.
    files: dict[str, int]
    state_bytes: int
    #: Epochs that were committed so far.
    epochs: int


def kind_of(process: Process, processes: Sequence[Process]) -> str:
    """Workers are forked from the daemon, and have its command line."""
    if process.pid == process.session:
        return DRIVER
    if process.is_driver_jvm:
        return JVM
    if "ready_daemon" not in process.command and not process.is_python_daemon:
        return OTHER
    parent = next((other for other in processes if other.pid == process.parent), None)
    return WORKER if parent is not None and parent.command == process.command else DAEMON


def count_files(folder: Path) -> tuple[int, int]:
    """How many files lie below the folder, and how many bytes they have; some may go meanwhile."""
    number = size = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                size += Path(path, name).stat().st_size
            except FileNotFoundError:
                continue
            number += 1
    return number, size


#: Of Spark, which deletes them when its JVM collects garbage.
SHUFFLES = "shuffles"


def count_staged(output: Path) -> int:
    """Files of sinks that nobody may read yet, or ever; manifests are output, and grow with it."""
    return sum(count_files(folder)[0] for folder in output.glob("*/_*") if folder.name != "_committed")


@dataclass(slots=True)
class Sampler:
    """Looks at a session and at the folders of its job until it is told to stop, in a thread of its own."""

    session: int
    places: Places
    interval_s: float
    #: How many epochs there are so far.
    epochs: Callable[[], int]
    started_s: float
    samples: list[Sample] = field(default_factory=list)
    _cpu_s: dict[int, float] = field(default_factory=dict)
    _stopped: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="soak-sampler", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def look(self) -> Sample:
        processes = session_processes(self.session)
        memory: dict[str, int] = defaultdict(int)
        descriptors: dict[str, int] = defaultdict(int)
        numbers: dict[str, int] = defaultdict(int)
        workers = []
        for process in processes:
            kind = kind_of(process, processes)
            memory[kind] += pss_bytes(process.pid)
            descriptors[kind] += count_descriptors(process.pid)
            numbers[kind] += 1
            if kind == WORKER:
                workers.append(process.pid)
        self._cpu_s |= session_cpu_s(self.session)
        state, state_bytes = count_files(self.places.state)
        shuffles = sum(count_files(folder)[0] for folder in self.places.temp.rglob("blockmgr-*"))
        return Sample(
            time_s=time.monotonic() - self.started_s,
            pss_bytes=dict(memory),
            descriptors=dict(descriptors),
            processes=dict(numbers),
            cpu_s=sum(self._cpu_s.values()),
            worker_cpu_s={pid: self._cpu_s.get(pid, 0.0) for pid in workers},
            files={
                "state": state,
                "cache": count_files(self.places.cache)[0],
                "temporary": count_files(self.places.temp)[0] - shuffles,
                SHUFFLES: shuffles,
                "staged": count_staged(self.places.output),
            },
            state_bytes=state_bytes,
            epochs=self.epochs(),
        )

    def _run(self) -> None:
        while not self._stopped.wait(self.interval_s):
            self.samples.append(self.look())


def count_descriptors(pid: int) -> int:
    try:
        return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return 0
