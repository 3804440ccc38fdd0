"""A job from its start to its end in one process, with one parallelism after the other."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

from arroyo_core.pipeline.plan import Plan
from arroyo_core.plugin import PluginSet
from arroyo_core.runtime.job import MAX_RESTARTS, Job, JobListener, Listeners, SilentListener
from arroyo_core.runtime.rescale import RescaleSignal
from arroyo_core.runtime.results import EpochResult, JobResult
from arroyo_core.runtime.start import StartOptions, check_start
from arroyo_core.runtime.status import StatusWriter
from arroyo_core.runtime.steps import EpochExecutor
from arroyo_core.runtime.stop import StopSignal
from arroyo_core.runtime.user_code import store_pickled
from arroyo_core.state import ParquetBackend, get_storage_provider

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLives:
    """Runs a job until it ends for another reason than being rescaled.

    Each life has one parallelism and one generation, and goes on from the checkpoint at which the one before ended.
    """

    executor: EpochExecutor
    plugins: PluginSet
    storage_url: str
    #: Whether others look there for how the job is.
    has_status: bool = False
    listener: JobListener = field(default_factory=SilentListener)
    stop: StopSignal = field(default_factory=StopSignal)
    rescale: RescaleSignal = field(default_factory=RescaleSignal)
    max_restarts: int = MAX_RESTARTS
    #: The address of Spark's own pages; empty where there are none.
    spark_ui: str = ""
    #: Gives the plan for another parallelism; without, there is none.
    replan: Callable[[int], Plan] | None = None
    #: Raises why a plan cannot run where the job does.
    check: Callable[[Plan], None] = lambda _: None
    #: Is given the plan of each life before it reads its checkpoints.
    prepare: Callable[[Plan], None] = lambda _: None

    def run(self, plan: Plan, start: StartOptions) -> JobResult:
        """As `Job.run`, whose counts go on over all lives."""
        result: JobResult | None = None
        while True:
            with ExitStack() as resources:
                status = StatusWriter(get_storage_provider(self.storage_url), plan.job_id) if self.has_status else None
                job = self._job(plan, start, status, result)
                job.result.spark_ui = self.spark_ui
                if status is not None:
                    resources.enter_context(status).watch(job.result)
                result = job.run()
                if job.next_plan is None or self.stop.is_requested:
                    return result
                if status is not None:
                    status.hand_over()
            plan, start = job.next_plan, StartOptions()
            logger.warning(
                "%s goes on with %d subtasks beside each other after epoch %d",
                plan.job_id,
                plan.width,
                job.steps.reached,
            )

    def _job(self, plan: Plan, start: StartOptions, status: StatusWriter | None, before: JobResult | None) -> Job:
        told: JobListener = self.listener if before is None else _Onwards(self.listener)
        stored = store_pickled(plan)
        self.prepare(stored)
        return Job(
            stored,
            self.executor,
            plugins=self.plugins,
            storage_url=self.storage_url,
            listener=Listeners(told) if status is None else Listeners(told, status),
            stop=self.stop,
            start=start,
            max_restarts=self.max_restarts,
            rescale=self.rescale,
            replan=None if self.replan is None else self._plan_for,
            before=before,
        )

    def _plan_for(self, parallelism: int) -> Plan:
        """Raises whatever would keep the next life from starting, while this one goes on."""
        assert self.replan is not None
        plan = self.replan(parallelism)
        self.check(plan)
        backend = ParquetBackend(get_storage_provider(self.storage_url), plan.job_id)
        check_start(backend, plan, self.plugins, StartOptions())
        return plan


class _Onwards(SilentListener):
    """Passes epochs on: the job has started already."""

    def __init__(self, listener: JobListener) -> None:
        self._listener = listener

    def on_epoch(self, result: EpochResult, job: JobResult) -> None:
        self._listener.on_epoch(result, job)
