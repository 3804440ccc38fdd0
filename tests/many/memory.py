"""How much memory the processes of a session take, by kind; on Linux."""

from __future__ import annotations

import statistics
import threading
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.nexmark.processes import pss_bytes, session_cpu_s

from ..integration.processes import session_processes
from ..soak.samples import KINDS, kind_of
from .command import Command

MIB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Proportional set sizes and numbers of processes, by kind."""

    time_s: float
    pss_bytes: dict[str, int]
    processes: dict[str, int]
    cpu_s: float

    @property
    def total_bytes(self) -> int:
        return sum(self.pss_bytes.values())


@dataclass(slots=True)
class Memory:
    """Looks at a command every so often, between enter and exit."""

    command: Command
    interval_s: float
    looks: list[Look] = field(default_factory=list)
    _cpu_s: dict[int, float] = field(default_factory=dict)
    _is_over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread = field(init=False)

    def __enter__(self) -> Memory:
        self._thread = threading.Thread(target=self._run, name="many-memory", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def look(self) -> Look:
        processes = session_processes(self.command.session)
        sizes: dict[str, int] = defaultdict(int)
        numbers: dict[str, int] = defaultdict(int)
        for process in processes:
            kind = kind_of(process, processes)
            sizes[kind] += pss_bytes(process.pid)
            numbers[kind] += 1
        self._cpu_s |= session_cpu_s(self.command.session)
        return Look(
            time_s=self.command.time_s,
            pss_bytes=dict(sizes),
            processes=dict(numbers),
            cpu_s=sum(self._cpu_s.values()),
        )

    def _run(self) -> None:
        while not self._is_over.wait(self.interval_s):
            self.looks.append(self.look())


def median_mib(looks: Sequence[Look], kind: str | None = None) -> float:
    """Of one kind of process, or of all together."""
    sizes = [look.total_bytes if kind is None else look.pss_bytes.get(kind, 0) for look in looks]
    return statistics.median(sizes) / MIB if sizes else 0.0


def median_count(looks: Sequence[Look], kind: str) -> int:
    return int(statistics.median(look.processes.get(kind, 0) for look in looks)) if looks else 0


def memory_by_kind(looks: Sequence[Look]) -> dict[str, float]:
    return {kind: median_mib(looks, kind) for kind in KINDS}
