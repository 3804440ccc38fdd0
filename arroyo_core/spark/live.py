"""Workers that live on, as the tasks of one barrier stage: Spark places, starts, watches and ends them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from arroyo_core.runtime.live.access import NETWORK_TIMEOUT_SECONDS
from arroyo_core.runtime.live.crew import LiveWorkersError
from arroyo_core.runtime.live.worker import Host, Ticket, work
from arroyo_core.spark.executor import SparkWorkerError, translate
from arroyo_core.spark.shuffles import POOL, called

if TYPE_CHECKING:
    from pyspark import SparkContext

logger = logging.getLogger(__name__)

#: How long workers get to end by themselves when the driver has left them.
_GRACE_SECONDS = 0.5


#: Settings that encrypt what Spark's own processes send to each other. `spark.io.encryption.enabled` is about files.
_ENCRYPTING = ("spark.network.crypto.enabled", "spark.ssl.rpc.enabled", "spark.authenticate.enableSaslEncryption")


def is_network_encrypted(context: SparkContext) -> bool:
    """Whether Spark encrypts what it sends; then the ticket of a stage, too, comes to its workers so."""
    return any(context._conf.get(name, "false").strip().lower() == "true" for name in _ENCRYPTING)


def _network_timeout_s(context: SparkContext) -> int:
    given = context._conf.get("spark.network.timeout")
    if given is None:
        return NETWORK_TIMEOUT_SECONDS
    return max(1, int(context._jvm.org.apache.spark.network.util.JavaUtils.timeStringAsSec(given)))


class SparkLauncher:
    """Starts workers on a Spark that has a slot for each of them."""

    def __init__(self, context: SparkContext, *, is_one_machine: bool) -> None:
        self._context = context
        self.is_one_machine = is_one_machine
        self.host = "" if is_one_machine else context.getConf().get("spark.driver.host", "")
        self.is_encrypted = not is_one_machine and is_network_encrypted(context)
        self.network_timeout_s = _network_timeout_s(context)

    def start(self, ticket: Ticket, job_id: str) -> SparkStage:
        """Raises `SparkLostError` where Spark is gone, which no other try brings back."""
        try:
            return SparkStage(self._context, ticket, job_id)
        except Exception as error:
            raise translate(error) from error


class SparkStage:
    """A job of one stage, which ends when its workers do."""

    def __init__(self, context: SparkContext, ticket: Ticket, job_id: str) -> None:
        from pyspark import InheritableThread

        self._context = context
        self._ticket = ticket
        self._job_id = job_id
        self._tag = f"arroyo-live-{uuid4().hex}"
        self._failure: Exception | None = None
        self._thread = InheritableThread(target=self._run, name="arroyo-live-stage", daemon=True)
        self._thread.start()

    def failure(self) -> Exception | None:
        if self._thread.is_alive():
            return None
        return self._failure or LiveWorkersError("the workers of the job have ended")

    def end(self) -> None:
        self._thread.join(_GRACE_SECONDS)
        if self._thread.is_alive():
            try:
                self._context.cancelJobsWithTag(self._tag)
            except Exception as error:
                # Where Spark is gone, so is the stage.
                logger.debug("the stage of the workers could not be cancelled: %s", error)

    def _run(self) -> None:
        context, workers = self._context, self._ticket.workers
        try:
            context.addJobTag(self._tag)
            context.setJobDescription(f"arroyo {self._job_id}: {workers} live workers")
            context.setLocalProperty(POOL, self._job_id)
            with called(context, "live_workers"):
                tasks = (
                    context.parallelize(range(workers), workers).barrier().mapPartitions(task_function(self._ticket))
                )
                tasks.collect()
        except Exception as error:
            failure = translate(error)
            if isinstance(failure, SparkWorkerError):
                # Spark's own tries came too late to find the driver.
                failure = LiveWorkersError("the Python process of a worker has died", cause=failure)
            self._failure = failure


def task_function(ticket: Ticket) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """What `mapPartitions` sends to executors; it is pickled with its argument."""

    def live_workers(numbers: Iterable[Any]) -> Iterator[Any]:
        from arroyo_core.spark.live import run_worker

        return run_worker(ticket, iter(numbers))

    return live_workers


def run_worker(ticket: Ticket, numbers: Iterator[Any]) -> Iterator[Any]:
    from pyspark import TaskContext

    from arroyo_core.plugin import installed_plugins
    from arroyo_core.state import default_warm_cache

    context = TaskContext.get()
    if context is None:
        raise RuntimeError("not inside a Spark task")
    is_clean = work(ticket, context.partitionId(), Host(installed_plugins, default_warm_cache()))
    # Spark takes a worker back only when it has read all of its input. One in which user code still runs must end.
    if is_clean:
        for _ in numbers:
            pass
    yield from ()
