"""Asks the driver of a job for something, in the files beside its checkpoints that `arroyo stop` and `rescale` use."""

from __future__ import annotations

import time

from arroyo_console.store.records import PipelineRecord
from arroyo_console.values import State
from arroyo_core.cli.job_states import ENDED, JobState, read_job_state
from arroyo_core.runtime.events import StopMode
from arroyo_core.runtime.rescale import RescaleFile
from arroyo_core.runtime.status import Life
from arroyo_core.runtime.stop import StopFile
from arroyo_core.state import ParquetBackend, get_storage_provider


def backend_of(pipeline: PipelineRecord) -> ParquetBackend | None:
    """Where a job has its state; None before its first start."""
    if not pipeline.job.checkpoint_url:
        return None
    return ParquetBackend(get_storage_provider(pipeline.job.checkpoint_url), pipeline.name)


def driver_of(pipeline: PipelineRecord) -> JobState | None:
    """What the newest driver of a job has said of itself."""
    backend = backend_of(pipeline)
    return None if backend is None else read_job_state(backend, now_us=time.time_ns() // 1000)


def ask_to_stop(pipeline: PipelineRecord, mode: str) -> bool:
    """Whether there is a driver of this job's newest run to ask."""
    driver = driver_of(pipeline)
    if driver is None or not _is_of_run(pipeline, driver):
        return False
    StopFile.at(pipeline.job.checkpoint_url, pipeline.name, driver.generation or 0).write(StopMode(mode))
    return True


def ask_to_rescale(pipeline: PipelineRecord, parallelism: int) -> bool:
    """Likewise."""
    driver = driver_of(pipeline)
    if driver is None or not _is_of_run(pipeline, driver):
        return False
    RescaleFile.at(pipeline.job.checkpoint_url, pipeline.name, driver.generation or 0).write(parallelism)
    return True


def job_ended(pipeline: PipelineRecord, *, finished: bool = False) -> bool:
    """Whether the newest driver says that it has ended; with `finished`, that the data has."""
    driver = driver_of(pipeline)
    if driver is None:
        return False
    return driver.state == Life.FINISHED if finished else driver.state in ENDED


def _is_of_run(pipeline: PipelineRecord, driver: JobState) -> bool:
    run = pipeline.run
    is_same = run is not None and run.pid is not None and driver.pid == run.pid
    return is_same and driver.state in (Life.RUNNING, Life.UNKNOWN) and pipeline.job.state is not State.CREATED
