"""Batches of a Spark stream as epochs: `stream.writeStream.foreachBatch(pipeline.on_batch(input="bids"))`.

Spark gives a batch again if it did not get to know that the batch was done. The position of the last batch is part of
the checkpoint that its rows went into, so that it is known whether they did. A call returns when the epoch of its batch
is committed; Spark writes down only then that the batch is done.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from arroyo_core.api import GivenPosition
from arroyo_core.errors import ArroyoError, Domain, ExternalError, SetupError
from arroyo_core.pipeline.plan import Plan
from arroyo_core.plugin import PluginSet, installed_plugins
from arroyo_core.runtime.events import StopMode
from arroyo_core.runtime.given import check_given, read_position
from arroyo_core.runtime.job import MAX_RESTARTS, SilentListener
from arroyo_core.runtime.job_threads import start_job_thread
from arroyo_core.runtime.lives import JobLives
from arroyo_core.runtime.request import EpochRequest
from arroyo_core.runtime.results import EpochResult, JobResult
from arroyo_core.runtime.start import StartOptions
from arroyo_core.runtime.stop import StopSignal
from arroyo_core.spark.inputs import EpochInputs, check_frames
from arroyo_core.spark.queries import query_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger(__name__)

#: How often who waits looks whether the job has ended.
_LOOK_S = 0.1


class BatchError(ArroyoError):
    """A batch that cannot follow what the job has read; the message says what can be done."""

    domain = Domain.USER


@dataclass(slots=True)
class _Batch:
    """A batch on its way; done when its epoch is committed."""

    position: GivenPosition
    frame: DataFrame
    #: That it was given to last.
    epoch: int | None = None
    is_done: threading.Event = field(default_factory=threading.Event)


class BatchGiver(SilentListener):
    """Gives the batch that waits to the next epoch, and is told when that is committed."""

    def __init__(self, node_id: str, plugins: PluginSet, stop: StopSignal) -> None:
        self._node_id = node_id
        self._plugins = plugins
        self._stop = stop
        self._changed = threading.Condition()
        self._batch: _Batch | None = None
        self._looks = 0
        self._is_waiting = False
        self._is_cancelled = False

    def offer(self, batch: _Batch) -> None:
        with self._changed:
            self._batch = batch
            self._changed.notify_all()

    def give(self, plan: Plan, request: EpochRequest) -> EpochInputs | None:
        """Waits for a batch, unless the job is to end."""
        if request.stop is not None or request.budget.interval_ms == 0:
            return None
        position = read_position(plan, self._plugins, self._node_id, request)
        batch = self._wait(plan, position)
        if batch is None:
            return None
        batch.epoch = request.epoch
        return EpochInputs(frames={self._node_id: batch.frame}, positions={self._node_id: batch.position})

    def waiting(self) -> str:
        if not self._is_waiting:
            return ""
        self._looks += 1
        return f"waiting for a batch, look {self._looks}"

    def cancel(self) -> None:
        with self._changed:
            self._is_cancelled = True
            self._changed.notify_all()

    def end(self) -> None:
        with self._changed:
            self._is_cancelled = False

    def on_epoch(self, result: EpochResult, job: JobResult) -> None:
        with self._changed:
            if self._batch is not None and self._batch.epoch == result.epoch:
                self._batch.is_done.set()
                self._batch = None

    def _wait(self, plan: Plan, position: GivenPosition | None) -> _Batch | None:
        """The batch to give; None where the job is to end."""
        self._is_waiting = True
        try:
            with self._changed:
                while not self._stop.is_requested:
                    if self._is_cancelled:
                        raise ExternalError("the epoch was cancelled while it waited for a batch")
                    if self._batch is not None:
                        check_follows(plan.job_id, self._node_id, position, self._batch.position)
                        if position is None or position.number < self._batch.position.number:
                            return self._batch
                        if self._batch.epoch is None:
                            # Published by a driver before this one, and committed when this one began.
                            logger.info("batch %d was published before: it is skipped", self._batch.position.number)
                            self._batch.is_done.set()
                            self._batch = None
                    self._changed.wait(_LOOK_S)
                if self._stop.mode is StopMode.IMMEDIATE:
                    # Not an epoch without rows: what cancels it may come before its tasks are there, and they would
                    # wait for its whole interval.
                    raise ExternalError("the epoch was given up while it waited for a batch: the job is to stop")
                return None
        finally:
            self._is_waiting = False


def check_follows(job_id: str, node_id: str, last: GivenPosition | None, batch: GivenPosition) -> None:
    """Raises `BatchError` for a batch of another stream than that of the state: its number means nothing there."""
    if last is None or last.stream == batch.stream:
        return
    if not last.stream:
        raise BatchError(
            f"job {job_id!r} has read a whole DataFrame for {node_id!r}, and nothing can follow: give the pipeline "
            "another name"
        )
    raise BatchError(
        f"batch {batch.number} is of query {batch.stream}, and job {job_id!r} has read {node_id!r} up to batch "
        f"{last.number} of query {last.stream}: nobody can tell which of its rows the state has. Start the query with "
        "the checkpointLocation that it had; or, for a query that is meant to be new, give the pipeline another name, "
        "or delete its checkpoints"
    )


class _Run:
    """A job in a thread of its own, which lives from batch to batch."""

    def __init__(self, feed: BatchFeed, frame: DataFrame) -> None:
        from arroyo_core.spark.executor import SparkExecutor

        plugins = installed_plugins()
        self._stop = StopSignal()
        self._giver = BatchGiver(feed.node_id, plugins, self._stop)
        self._executor = SparkExecutor(frame.sparkSession, self._giver)
        assert feed.plan.checkpoint.url is not None
        self._lives = JobLives(
            executor=self._executor,
            plugins=plugins,
            storage_url=feed.plan.checkpoint.url,
            has_status=True,
            listener=self._giver,
            stop=self._stop,
            max_restarts=feed.max_restarts,
        )
        self._error: BaseException | None = None
        self._thread = start_job_thread(self._run, feed.plan, feed.start, name="arroyo-batches")

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def process(self, batch: _Batch) -> None:
        """Returns when the batch is committed; raises what the job fails with."""
        self._giver.offer(batch)
        while not batch.is_done.wait(_LOOK_S):
            if not self._thread.is_alive() and not batch.is_done.is_set():
                raise self._error or BatchError("the job was stopped, and the batch is not processed")

    def close(self) -> None:
        self._stop.request(StopMode.IMMEDIATE)
        self._thread.join()

    def _run(self, plan: Plan, start: StartOptions) -> None:
        try:
            self._lives.run(plan, start)
        except BaseException as error:
            self._error = error
        finally:
            self._executor.close()


class BatchFeed:
    """What `Pipeline.on_batch` makes for `foreachBatch`: call it with each batch of a stream, in their order.

    The job starts with the first batch, and waits between batches. A call raises what the job fails with, and so fails
    the query; the first batch after that starts the job again, from its last checkpoint. Pickled, it is a feed of the
    same pipeline that has not started: Spark Connect calls it on its server.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        node_id: str,
        query: str | None = None,
        start: StartOptions | None = None,
        max_restarts: int = MAX_RESTARTS,
    ) -> None:
        if plan.checkpoint.url is None:
            raise SetupError(
                "a pipeline that takes batches needs a 'checkpoint: {url: ...}', which keeps what batches it has read"
            )
        self.plan = plan
        self.node_id = node_id
        self.query = query
        self.start = start or StartOptions()
        self.max_restarts = max_restarts
        self._run: _Run | None = None
        self._lock = threading.Lock()

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        with self._lock:
            check_frames(self.plan, {self.node_id: frame})
            # First: it refuses what is not a batch, before a job starts.
            stream = query_of(frame, self.query)
            if self._run is None or not self._run.is_running:
                self._run = _Run(self, frame)
            self._run.process(_Batch(GivenPosition(stream, batch_id), frame))

    def close(self) -> None:
        """Stop the job, when the query has ended. A batch after that starts it again."""
        with self._lock:
            if self._run is not None:
                self._run.close()
                self._run = None

    def __enter__(self) -> BatchFeed:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_run": None, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self._lock = threading.Lock()


def batch_feed(
    plan: Plan,
    plugins: PluginSet,
    *,
    node_id: str,
    query: str | None,
    start: StartOptions | None,
    max_restarts: int,
) -> BatchFeed:
    """Raises `SetupError` where the node takes no batches, or is not the only one that takes rows of the run."""
    check_given(plan, plugins, [node_id])
    return BatchFeed(plan, node_id=node_id, query=query, start=start, max_restarts=max_restarts)
