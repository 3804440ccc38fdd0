"""How jobs are, from what they have stored: their checkpoints, and what their drivers last said of themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from arroyo_core.errors import StateError
from arroyo_core.proto.state_pb2 import CheckpointMetadata
from arroyo_core.runtime.event_log import read_epoch
from arroyo_core.runtime.status import DriverStatus, Life, judge_life, read_status
from arroyo_core.state import ParquetBackend
from arroyo_core.state.inspection import finished_epoch

NOT_STARTED = "not started"
#: Nobody runs the job, as far as anybody can know.
ENDED = frozenset({Life.FINISHED, Life.STOPPED, Life.FAILED, Life.INTERRUPTED, Life.DEAD, NOT_STARTED})
#: States in which nothing is wrong.
HEALTHY = frozenset({Life.RUNNING, Life.FINISHED, Life.STOPPED, NOT_STARTED})


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState:
    """One job; of what nobody knows there is None."""

    job: str
    url: str
    #: A `Life`, or that no driver ever was there.
    state: str
    generation: int | None = None
    epoch: int | None = None
    #: When that epoch was committed, in microseconds since 1970.
    committed_us: int | None = None
    #: Rows that sources knew of at that epoch and had not read.
    backlog: int | None = None
    host: str | None = None
    pid: int | None = None
    started_us: int | None = None
    #: What the driver last said that it had been up to.
    restarts: int | None = None
    parallelism: int | None = None
    #: Why the job failed, or went back to its last checkpoint most lately, or cannot be looked at.
    error: str = ""
    #: Spark's own pages, while the driver runs.
    spark_ui: str = ""
    #: What the last epoch came to, by node.
    operators: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    #: The epoch that runs for long, as far as it has come, and by node; None where nobody tells.
    running: Mapping[str, Any] | None = None
    running_operators: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def is_running(self) -> bool:
        return self.state == Life.RUNNING


def read_job_state(backend: ParquetBackend, *, now_us: int) -> JobState:
    """Look at one job; reads only. A job that cannot be looked at is `unknown`, with the reason."""
    try:
        return _read(backend, now_us=now_us)
    except StateError as error:
        return JobState(job=backend.job_id, url=backend.storage.shown_url, state=Life.UNKNOWN, error=str(error))


def _read(backend: ParquetBackend, *, now_us: int) -> JobState:
    facts, url = backend.read_facts(), backend.storage.shown_url
    if not facts.generations:
        return JobState(job=backend.job_id, url=url, state=NOT_STARTED)
    generation = max(facts.generations)
    status = read_status(backend.storage, backend.job_id, generation)
    epoch = max(facts.published, default=None)
    error = status.error if status is not None else ""
    latest: CheckpointMetadata | None = None
    if epoch is not None:
        try:
            latest = backend.load_checkpoint_metadata(backend.job_id, epoch)
        except StateError as failure:
            error = str(failure)
    # A driver that has just claimed its job has not said anything yet; nor have those of earlier versions.
    is_finished = status is None and finished_epoch(backend, facts) is not None
    life = Life.FINISHED if is_finished else Life.UNKNOWN if status is None else judge_life(status, now_us=now_us)
    return JobState(
        job=backend.job_id,
        url=url,
        state=life.value,
        generation=generation,
        epoch=epoch,
        committed_us=_committed_us(status, latest),
        backlog=None if latest is None else sum(operator.backlog for operator in latest.operators),
        host=status.host if status is not None else None,
        pid=status.pid if status is not None else None,
        started_us=status.started_us if status is not None else None,
        restarts=status.metrics.get("restarts") if status is not None else None,
        parallelism=status.metrics.get("parallelism") if status is not None else None,
        error=error,
        spark_ui=status.spark_ui if status is not None and life is Life.RUNNING else "",
        operators=_operators(backend, status, latest),
        running=status.running if status is not None and life is Life.RUNNING else None,
        running_operators=status.running_operators if status is not None and life is Life.RUNNING else {},
    )


def _committed_us(status: DriverStatus | None, latest: CheckpointMetadata | None) -> int | None:
    told_us = status.metrics.get("committed_us") if status is not None and status.epoch is not None else None
    # The last word of a driver that runs is some seconds old.
    return max((time_us for time_us in (told_us, latest and latest.finish_time_us) if time_us), default=None)


def _operators(
    backend: ParquetBackend, status: DriverStatus | None, latest: CheckpointMetadata | None
) -> Mapping[str, Mapping[str, Any]]:
    if status is not None and status.operators:
        return status.operators
    # This driver has not committed anything: the log beside the last checkpoint knows.
    logged = read_epoch(backend.storage, latest) if latest is not None else None
    return logged["operators"] if logged is not None else {}
