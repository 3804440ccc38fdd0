"""What runs in a Spark task: one partition of one wave."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import pyarrow as pa

from arroyo_core.api import GivenRows
from arroyo_core.plugin import installed_plugins
from arroyo_core.runtime.clocks import task_clock
from arroyo_core.runtime.frames import Frame
from arroyo_core.runtime.request import TaskEnvironment
from arroyo_core.runtime.sources import has_left_behind
from arroyo_core.runtime.wave import run_wave
from arroyo_core.spark.feed import Feed, GivenInputs
from arroyo_core.spark.frame_batches import batches_of, frames_of
from arroyo_core.spark.parcels import Told
from arroyo_core.state import default_warm_cache

#: Spark's default number of tries. Where a cluster tries less often, its own error is shown instead.
TRIES = 4

FrameFunction: TypeAlias = Callable[[Iterable[Frame]], Iterator[Frame]]
RecordFunction: TypeAlias = Callable[[Iterable[Frame]], Iterator[bytes]]
ArrowFunction: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def frame_function(told: Told, wave: int) -> FrameFunction:
    """What `mapPartitions` sends to executors for the last wave; it is pickled with its arguments."""

    def wave_task(frames: Iterable[Frame]) -> Iterator[Frame]:
        from arroyo_core.spark.worker import run_task

        return run_task(told, wave, iter(frames))

    # Spark's pages show it.
    wave_task.__name__ = f"wave_{wave}"
    return wave_task


def record_function(told: Told, wave: int, width: int) -> RecordFunction:
    """What `mapPartitions` sends for a wave in front of one with `width` partitions; it gives `records_of` frames."""

    def wave_task(frames: Iterable[Frame]) -> Iterator[bytes]:
        from arroyo_core.spark.packing import records_of
        from arroyo_core.spark.worker import run_task

        return records_of(run_task(told, wave, iter(frames)), width)

    wave_task.__name__ = f"wave_{wave}"
    return wave_task


def no_frames(frames: Iterable[Any]) -> Iterator[Any]:
    """A wave that does nothing."""
    return iter(frames)


def arrow_function(told: Told, wave: int, inputs: GivenInputs | None = None) -> ArrowFunction:
    """What `mapInArrow` sends to executors; it is pickled with its arguments. The first wave may have `inputs`."""

    def wave_task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from arroyo_core.spark.worker import run_arrow_task

        return run_arrow_task(told, wave, batches, inputs)

    wave_task.__name__ = f"wave_{wave}"
    return wave_task


def run_arrow_task(
    told: Told, wave: int, batches: Iterator[pa.RecordBatch], inputs: GivenInputs | None = None
) -> Iterator[pa.RecordBatch]:
    if inputs is not None:
        feed = Feed(batches, inputs)
        yield from batches_of(run_task(told, wave, feed.rest(), feed.given()))
    else:
        yield from batches_of(run_task(told, wave, _frames_in(batches) if wave else _without_frames(batches)))


def _frames_in(batches: Iterator[pa.RecordBatch]) -> Iterator[Frame]:
    for batch in batches:
        yield from frames_of(batch)


def _without_frames(batches: Iterator[pa.RecordBatch]) -> Iterator[Frame]:
    """The rows that start the sources mean nothing; they are read when the sources have ended."""
    for _ in batches:
        pass
    yield from ()


def run_task(
    told: Told, wave: int, frames: Iterator[Frame], given: Mapping[str, GivenRows] | None = None
) -> Iterator[Frame]:
    # Here: what imports this module says in a sentence that pyspark is missing.
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        raise RuntimeError("not inside a Spark task")
    plan, request = told.open()
    environment = TaskEnvironment(
        partition=context.partitionId(),
        attempt=context.taskAttemptId(),
        plugins=(request.plugins or installed_plugins)(),
        clock=task_clock(request),
        is_last_attempt=context.attemptNumber() >= TRIES - 1,
        is_concurrent=True,
        # Whichever process of this host gets the subtask next continues from what this one wrote.
        cache=default_warm_cache(),
        given=given or {},
    )
    yield from run_wave(plan, wave, request, environment, frames)
    # Spark takes a worker back only when it has read all of its input. One in which user code still runs must end.
    if not has_left_behind():
        for _ in frames:
            pass
