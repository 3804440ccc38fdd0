"""What runs in a Spark task: one partition of one wave."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark import TaskContext

from arroyo_core.api import SystemClock
from arroyo_core.graph.plan import Plan
from arroyo_core.plugin import installed_plugins
from arroyo_core.runtime.request import EpochRequest, TaskEnvironment
from arroyo_core.runtime.wave import run_wave

#: Spark's default number of tries. Where a cluster tries less often, its own error is shown instead.
TRIES = 4

WaveFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def wave_function(plan: Plan, wave: int, request: EpochRequest) -> WaveFunction:
    """The function that `mapInArrow` sends to executors; it is pickled with its arguments."""

    def wave_task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from arroyo_core.spark.worker import run_task

        return run_task(plan, wave, request, batches)

    # Spark's pages show it.
    wave_task.__name__ = f"wave_{wave}"
    return wave_task


def run_task(
    plan: Plan, wave: int, request: EpochRequest, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    if context is None:
        raise RuntimeError("not inside a Spark task")
    environment = TaskEnvironment(
        partition=context.partitionId(),
        attempt=context.taskAttemptId(),
        plugins=installed_plugins(),
        clock=SystemClock(),
        is_last_attempt=context.attemptNumber() >= TRIES - 1,
        is_concurrent=True,
    )
    if wave == 0:
        # The rows that started the sources mean nothing; the generator must be used up all the same.
        for _ in batches:
            pass
        batches = iter(())
    yield from run_wave(plan, wave, request, environment, batches)
