"""What a driver leaves beside its checkpoints, so that others can tell whether it runs without talking to it.

    {job}/generations/{generation}.status

One small file for each generation, replaced every few seconds by a thread of the driver and once more at its end, with
the reason. Nothing rests on it: a file that cannot be written is tried again, and the job goes on. Where the claim of
the driver is gone, or another's, the state was removed while it ran, and nothing is written any more.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
import time
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from arroyo_core.errors import StateError
from arroyo_core.runtime.metric import json_values
from arroyo_core.runtime.results import EpochResult, JobResult
from arroyo_core.state import ParquetBackend, StorageProvider, paths
from arroyo_core.state.failures import UNREADABLE_JSON, MissingFileError, OversizedFileError
from arroyo_core.state.limits import SMALL_FILE_BYTES, TOLD_FILE_BYTES

#: How often the file is written on this machine, and across a network, where each write is a request.
BEAT_S = 3.0
REMOTE_BEAT_S = 15.0
#: A driver that has not written for so many beats may be gone.
MISSED_BEATS = 4

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

logger = logging.getLogger(__name__)


class Ending(StrEnum):
    """How a driver ended."""

    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


class DriverStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What a driver last said of itself. Times are in microseconds since 1970, by its clock."""

    job: str
    generation: int
    host: str
    #: Of the host as it runs now; empty where nobody knows.
    boot_id: str
    pid: int
    #: With the pid, names one process of a boot: pids are used again.
    process_start: int
    started_us: int
    written_us: int
    beat_s: float
    #: How it ended; None while it runs.
    ending: Ending | None = None
    #: Why it failed, or went back to its last checkpoint most lately.
    error: str = ""
    #: Spark's own pages; empty where nobody knows any.
    spark_ui: str = ""
    #: The metrics of the job, and of its last committed epoch with its operators, by their keys in JSON.
    metrics: dict[str, Any] = {}
    epoch: dict[str, Any] | None = None
    operators: dict[str, dict[str, Any]] = {}
    #: The epoch that runs, and its operators, as far as they have come; None where nobody tells.
    running: dict[str, Any] | None = None
    running_operators: dict[str, dict[str, Any]] = {}


class StatusWriter:
    """Writes the status of one driver between enter and exit; a listener of its job."""

    def __init__(self, storage: StorageProvider, job_id: str) -> None:
        self._storage = storage
        self._job_id = job_id
        self._beat_s = REMOTE_BEAT_S if storage.is_remote else BEAT_S
        self._started_us = time.time_ns() // 1000
        self._job: JobResult | None = None
        self._last: EpochResult | None = None
        #: The claim of this driver, as it found it.
        self._claim = b""
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> StatusWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        job = self._job
        if job is None or not job.generation:
            return
        if self._thread is None:
            self._claim = self._read_claim(job) or b""
        else:
            self._is_over.set()
            self._thread.join()
        self._write(job, ending=_ending(job, error), error=str(error) if error is not None else "")

    def hand_over(self) -> None:
        """The job goes on under another generation, which has a status of its own: this one has no last word."""
        self._is_over.set()
        if self._thread is not None:
            self._thread.join()
        self._job = None

    def watch(self, job: JobResult) -> None:
        """The job is about to run: it may have claimed its state, and fail before it starts."""
        self._job = job

    def on_start(self, job: JobResult) -> None:
        self._job = job
        self._claim = self._read_claim(job) or b""
        self._write(job)
        self._thread = threading.Thread(target=self._run, args=(job,), name="arroyo-status", daemon=True)
        self._thread.start()

    def on_epoch(self, result: EpochResult, job: JobResult) -> None:
        self._last = result

    def _run(self, job: JobResult) -> None:
        while not self._is_over.wait(self._beat_s):
            self._write(job)

    def _read_claim(self, job: JobResult) -> bytes | None:
        try:
            path = paths.generation_claim(self._job_id, job.generation)
            return self._storage.read(path, max_bytes=SMALL_FILE_BYTES)
        except StateError:
            return None

    def _write(self, job: JobResult, *, ending: Ending | None = None, error: str = "") -> None:
        if not self._claim or self._read_claim(job) != self._claim:
            return
        last = self._last
        running = job.look() if ending is None else None
        status = DriverStatus(
            job=self._job_id,
            generation=job.generation,
            host=socket.gethostname(),
            boot_id=boot_id(),
            pid=os.getpid(),
            process_start=process_start(os.getpid()) or 0,
            started_us=self._started_us,
            written_us=time.time_ns() // 1000,
            beat_s=self._beat_s,
            ending=ending,
            error=error or job.last_error,
            spark_ui=job.spark_ui,
            metrics=json_values(job),
            epoch=last.summary() if last is not None else None,
            operators=_operators(last) if last is not None else {},
            running=running.summary() if running is not None else None,
            running_operators=running.operator_summaries() if running is not None else {},
        )
        path = paths.driver_status(self._job_id, job.generation)
        try:
            self._storage.write(path, msgspec.json.encode(status), is_durable=False)
        except StateError as failure:
            logger.debug("the status of the driver could not be written: %s", failure)


def read_status(storage: StorageProvider, job_id: str, generation: int) -> DriverStatus | None:
    """What the driver of a generation last said; None where it said nothing that can be read."""
    try:
        data = storage.read(paths.driver_status(job_id, generation), max_bytes=TOLD_FILE_BYTES)
        return msgspec.json.decode(data, type=DriverStatus)
    except (MissingFileError, OversizedFileError, *UNREADABLE_JSON):
        return None


def leave_stopped(backend: ParquetBackend) -> None:
    """Say, for whoever has claimed a job to change its state and not to run it, that nobody does."""
    with StatusWriter(backend.storage, backend.job_id) as status:
        status.on_start(JobResult(job_id=backend.job_id, generation=backend.generation))


class Life(StrEnum):
    """Whether a driver runs, as far as its last word tells."""

    RUNNING = "running"
    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    #: Its process is gone, without a last word.
    DEAD = "dead"
    #: It has not said anything for long, and is on another machine.
    UNKNOWN = "unknown"


def judge_life(status: DriverStatus, *, now_us: int) -> Life:
    """Whether the driver runs now. On its own machine the process is looked up; elsewhere its last word counts."""
    if status.ending is not None:
        return Life(status.ending)
    if status.host == socket.gethostname() and status.boot_id and status.boot_id == boot_id():
        return Life.RUNNING if process_start(status.pid) == status.process_start else Life.DEAD
    is_fresh = now_us - status.written_us < status.beat_s * MISSED_BEATS * 1e6
    return Life.RUNNING if is_fresh else Life.UNKNOWN


def _ending(job: JobResult, error: BaseException | None) -> Ending:
    if error is None:
        return Ending.FINISHED if job.is_finished else Ending.STOPPED
    return Ending.FAILED if isinstance(error, Exception) else Ending.INTERRUPTED


def _operators(last: EpochResult) -> dict[str, dict[str, Any]]:
    warnings = {name: list(metrics.warnings.values()) for name, metrics in last.operators.items()}
    return {name: {**found, "warnings": warnings[name]} for name, found in last.operator_summaries().items()}


def boot_id() -> str:
    with contextlib.suppress(OSError):
        return _BOOT_ID.read_text().strip()
    return ""


def process_start(pid: int) -> int | None:
    """When a process of this machine started, in ticks since the boot; None if there is none, or nobody knows."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name of the command, in brackets, may have spaces and brackets itself.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in ("Z", "X") else int(fields[19])
