"""From `kill -9` of a live worker to the first new committed epoch: the driver and its JVM stay."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

from arroyo_core.runtime.results import EpochResult, JobResult
from arroyo_core.spark.session import create_session

from ..nexmark.processes import session_pids
from .jobs import PARALLELISM, Stopwatch, run

RUNS = 5
#: Before the kill.
EPOCHS = 10


class Killer(Stopwatch):
    """Kills a Python worker after some epochs, and notes how long the next commit takes."""

    def __init__(self) -> None:
        super().__init__()
        self.restart_s: float | None = None
        self._killed_s: float | None = None

    def on_epoch(self, result: EpochResult, job: JobResult) -> None:
        super().on_epoch(result, job)
        if self._killed_s is not None:
            self.restart_s = time.perf_counter() - self._killed_s
            self.stop.request()
        elif job.epochs == EPOCHS:
            # Between two epochs nothing would be lost; in the middle of the next one something is.
            threading.Timer(0.05, self._kill).start()

    def _kill(self) -> None:
        workers = _python_workers()
        self._killed_s = time.perf_counter()
        os.kill(workers[0], signal.SIGKILL)


def _python_workers() -> list[int]:
    """The processes that tasks run in: the daemon forks them, so that their command is its own."""
    pids = session_pids(os.getsid(0))
    return [pid for pid in pids if "daemon" in _command(pid) and _command(pid) == _command(_parent(pid))]


def _command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def pipeline(folder: Path, number: int) -> dict[str, Any]:
    """One for each kill: a job waits longer after each failure in a row."""
    return {
        "name": f"restart_{number}",
        "parallelism": PARALLELISM,
        "checkpoint": {"url": f"{folder}/state", "interval": "100ms"},
        "nodes": [
            {"id": "bids", "operator": "nexmark.source", "config": {"rate": 20_000, "table": "bid"}},
            {"id": "keyed", "operator": "std.key_by", "inputs": ["bids"], "config": {"keys": ["auction"]}},
            {"id": "out", "operator": "filesystem.sink", "inputs": ["keyed"], "config": {"path": f"{folder}/{number}"}},
        ],
    }


def measure(folder: Path) -> dict[str, list[float]]:
    spark = create_session("bench", master=f"local[{PARALLELISM}]")
    found = []
    for number in range(RUNS):
        watch = Killer()
        run(spark, folder, pipeline(folder, number), watch, execution="live")
        if watch.restart_s is None:
            raise RuntimeError("the job ended before its worker was killed")
        found.append(watch.restart_s)
    spark.stop()
    return {"from kill -9 of a worker to the next commit": found}
