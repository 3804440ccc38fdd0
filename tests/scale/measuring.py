"""Runs one edge on local Spark, and looks at its processes and its calls to storage meanwhile; on Linux."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from ..integration.processes import end_session, session_processes
from ..soak.samples import DAEMON, DRIVER, JVM, WORKER, kind_of
from .edges import Edge, Size

PLUGIN = Path(__file__).with_name("plugin")
LOOK_S = 0.2
#: For the first hour of a slow machine; nothing may stand still.
TIMEOUT_S = 3600.0
#: Each job is stopped once, and goes on on a host that has none of its state: then all of it is read.
STOP_AFTER = 3
#: In the order of a table.
SHOWN = (DRIVER, JVM, DAEMON, WORKER)


@dataclass(slots=True)
class Traffic:
    """Calls to storage of one kind of data, by kind of call, and their bytes."""

    calls: dict[str, int] = field(default_factory=dict)
    read_bytes: int = 0
    written_bytes: int = 0
    #: The largest file that was written at once.
    largest_bytes: int = 0

    def add(self, kind: str, size: int) -> None:
        self.calls[kind] = self.calls.get(kind, 0) + 1
        if kind == "read":
            self.read_bytes += size
        else:
            self.written_bytes += size
            self.largest_bytes = max(self.largest_bytes, size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a run of an edge came to."""

    edge: str
    share: float
    duration_s: float
    epochs: int
    #: By kind of process, the greatest peak of one process, in bytes of resident memory.
    peak_bytes: dict[str, int]
    #: By folder: state, out, in.
    traffic: dict[str, Traffic]
    #: All that the last checkpoint refers to.
    state_bytes: int
    epoch_s: list[float]
    problem: str = ""


def measure(edge: Edge, size: Size, folder: Path) -> Measured:
    """Run it in an empty folder, stop it, and go on without what was cached; what fails is a result too."""
    calls = folder / "calls"
    calls.mkdir(parents=True)
    edge.make_input(size, folder)
    pipeline = folder / "pipeline.yaml"
    pipeline.write_text(yaml.safe_dump(edge.document(size, folder), sort_keys=False))
    started_s = time.monotonic()
    epochs: list[dict[str, Any]] = []
    peaks: dict[str, int] = {}
    problem = ""
    for stop_after in (STOP_AFTER, None):
        life = _live(pipeline, calls, stop_after)
        epochs += [line for line in life.lines if line["event"] == "epoch"]
        peaks = {kind: max(peaks.get(kind, 0), life.peaks.get(kind, 0)) for kind in peaks | life.peaks}
        if life.code:
            problem = f"exit code {life.code}: {(folder / 'stderr.log').read_text(errors='replace').strip()[-1500:]}"
            break
        shutil.rmtree(folder / "cache", ignore_errors=True)
    return Measured(
        edge=edge.name,
        share=size.share,
        duration_s=time.monotonic() - started_s,
        epochs=len(epochs),
        peak_bytes=peaks,
        traffic=read_traffic(calls, folder),
        state_bytes=epochs[-1]["state_bytes"] if epochs else 0,
        epoch_s=[line["duration_s"] for line in epochs],
        problem=problem or edge.problem(size, folder),
    )


@dataclass(frozen=True, slots=True)
class _Life:
    code: int
    lines: list[dict[str, Any]]
    peaks: dict[str, int]


def _live(pipeline: Path, calls: Path, stop_after: int | None) -> _Life:
    """One run, to its end or until it is asked to stop after so many epochs."""
    with running(pipeline, calls) as process:
        peaks = _Peaks(process.pid)
        peaks.start()
        timer = threading.Timer(TIMEOUT_S, os.killpg, [process.pid, signal.SIGKILL])
        timer.start()
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(json.loads(line))
            if len(lines) == stop_after:
                process.send_signal(signal.SIGTERM)
        code = process.wait()
        timer.cancel()
        peaks.stop()
    return _Life(code, lines, peaks.by_kind())


@contextmanager
def running(pipeline: Path, calls: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`arroyo run`, in a session of its own, with a cache for state that starts empty."""
    folder = pipeline.parent
    command = [str(Path(sys.executable).with_name("arroyo")), "run", str(pipeline), "--format", "json"]
    command += ["--master", "local[2]", "--conf", "spark.ui.enabled=false", "--max-restarts", "2"]
    path = os.pathsep.join(filter(None, [str(PLUGIN), os.environ.get("PYTHONPATH")]))
    with (folder / "stderr.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=folder,
            start_new_session=True,
            env=os.environ
            | {
                "PYTHONPATH": path,
                "ARROYO_COUNTED_CALLS": str(calls),
                "ARROYO_STATE_CACHE": str(folder / "cache"),
                "SPARK_LOCAL_IP": "127.0.0.1",
            },
        )
    try:
        yield process
    finally:
        end_session(process.pid)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


class _Peaks(threading.Thread):
    """Keeps the greatest resident memory of every process; the kernel notes it, so a look now and then is enough."""

    def __init__(self, session: int) -> None:
        super().__init__(daemon=True)
        self._session = session
        self._stopped = threading.Event()
        self._peaks: dict[tuple[int, int], tuple[str, int]] = {}

    def run(self) -> None:
        while not self._stopped.wait(LOOK_S):
            processes = session_processes(self._session)
            for process in processes:
                name = process.pid, process.start_ticks
                kind, peak = self._peaks.get(name, ("", 0))
                # A worker is known by its parent, which may be gone before it; what is about to end has no command.
                if kind != WORKER and process.command:
                    kind = kind_of(process, processes)
                self._peaks[name] = kind, max(_peak_bytes(process.pid), peak)

    def stop(self) -> None:
        self._stopped.set()
        self.join()

    def by_kind(self) -> dict[str, int]:
        found: dict[str, int] = defaultdict(int)
        for kind, peak in self._peaks.values():
            found[kind] = max(found[kind], peak)
        return dict(found)


def _peak_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)


def read_traffic(calls: Path, folder: Path) -> dict[str, Traffic]:
    """By the folder below that of the run."""
    found = {name: Traffic() for name in ("state", "in", "out")}
    for file in calls.glob("calls-*.txt"):
        for line in file.read_text().splitlines():
            kind, size, path = line.split(" ", 2)
            place = path.removeprefix("counted://").removeprefix(f"{folder}/").partition("/")[0]
            if place in found:
                found[place].add(kind, int(size))
    return found
