"""How measured processes run: a tree for each run, whose processor time and memory are taken from outside; on Linux."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

#: Between two looks at a tree.
SAMPLE_S = 0.2
#: How long processes may outlive the one that was started: a JVM ends after its Python.
LINGER_S = 20.0
_SUBREAPER = 36
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
#: Tells of a failure, from the end of what was printed.
_LAST_LINES = 15


class BenchError(Exception):
    """A process of the benchmark failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a tree of processes took. Memory is the greatest sum of the proportional set sizes (PSS) that was seen.

    It is 0 where nobody looked: a look takes 5 ms for a large process, and holds it up meanwhile.
    """

    process_s: float
    cpu_s: float
    peak_bytes: int


def run_tree(
    command: Sequence[object],
    *,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    timeout_s: float | None = None,
    looks_at_memory: bool = False,
) -> Usage:
    """Run a command to its end, with all processes that it starts; a failure, or taking too long, is a `BenchError`."""
    become_subreaper()
    log = folder / "process.log"
    started = time.perf_counter()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(part) for part in command],
            cwd=folder,
            env=inherited_environment() | dict(environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    watch = _Watch(process.pid, looks_at_memory=looks_at_memory)
    watch.start()
    timer = threading.Timer(timeout_s, kill_session, [process.pid]) if timeout_s else None
    if timer:
        timer.start()
    _, status, used = os.wait4(process.pid, 0)
    process_s = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    waited_s = used.ru_utime + used.ru_stime + _reap_orphans(process.pid)
    watch.stop()
    if timer:
        timer.cancel()
    if process.returncode:
        late = f" after {process_s:.0f} s" if timeout_s and process_s >= timeout_s else ""
        text = "\n".join(log.read_text(errors="replace").strip().splitlines()[-_LAST_LINES:])
        raise BenchError(f"exit code {process.returncode}{late}:\n{text}")
    return Usage(process_s=process_s, cpu_s=max(waited_s, watch.cpu_s), peak_bytes=watch.peak_bytes)


def become_subreaper() -> None:
    """Processes whose parent is gone become ours, so that their processor time can be asked for."""
    if ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0):
        raise BenchError(f"prctl: {os.strerror(ctypes.get_errno())}")


def inherited_environment() -> dict[str, str]:
    """Without what an activated environment, or a shell that forbids compiling, would do to the engines."""
    unwanted = {"PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "SPARK_HOME"}
    return {name: value for name, value in os.environ.items() if name not in unwanted}


def _reap_orphans(session: int) -> float:
    """The processor time of those that outlived their parents; who lingers too long is killed."""
    cpu_s = 0.0
    deadline = time.monotonic() + LINGER_S
    while left := session_pids(session):
        if time.monotonic() > deadline:
            kill_session(session)
        for pid in left:
            try:
                ended, _, used = os.wait4(pid, os.WNOHANG)
            except ChildProcessError:
                # It still has a parent of its own.
                continue
            if ended:
                cpu_s += used.ru_utime + used.ru_stime
        time.sleep(0.02)
    return cpu_s


def kill_session(session: int) -> None:
    """All processes that a measured one has started, and itself."""
    for pid in session_pids(session):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def session_pids(session: int) -> list[int]:
    """A tree shares a session, also where a process in the middle has gone."""
    return list(session_cpu_s(session))


def session_cpu_s(session: int) -> dict[int, float]:
    """By process of the session: its own processor time so far, without that of its children."""
    found = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                # The name of the program may hold anything, so the fields are counted from its closing bracket.
                fields = (path / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session:
                found[int(path.name)] = (int(fields[11]) + int(fields[12])) / _TICKS_PER_S
    return found


def pss_bytes(pid: int) -> int:
    """Its own memory, and its share of what it shares with others; nothing for a process that is gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


class _Watch(threading.Thread):
    """Looks at the processor time of a session, and at its memory if asked to, until it is told to stop.

    The kernel charges a process for children that it waited for. Spark's Python daemon waits for none of its workers,
    so that only a look at them tells what they took.
    """

    def __init__(self, session: int, *, looks_at_memory: bool) -> None:
        super().__init__(daemon=True)
        self._session = session
        self._looks_at_memory = looks_at_memory
        self._stopped = threading.Event()
        self._cpu_s: dict[int, float] = {}
        self.peak_bytes = 0

    @property
    def cpu_s(self) -> float:
        """Of all processes, each as it was seen last."""
        return sum(self._cpu_s.values())

    def run(self) -> None:
        while not self._stopped.wait(SAMPLE_S):
            seen = session_cpu_s(self._session)
            self._cpu_s |= seen
            if self._looks_at_memory:
                self.peak_bytes = max(self.peak_bytes, sum(map(pss_bytes, seen)))

    def stop(self) -> None:
        self._stopped.set()
        self.join()
