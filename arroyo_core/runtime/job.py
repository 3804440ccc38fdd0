"""The job: carries out what the controller decides, until the sources end or a stop is asked for."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from typing import Protocol

from arroyo_core.api import Clock
from arroyo_core.errors import ArroyoError, ExchangeError, RetryHint, SetupError, retry_hint
from arroyo_core.pipeline.plan import Plan
from arroyo_core.plugin import PluginSet
from arroyo_core.runtime.clocks import DriverClock
from arroyo_core.runtime.controller import Controller, Policy
from arroyo_core.runtime.event_log import EventLog
from arroyo_core.runtime.events import (
    CancelEpoch,
    CollectGarbage,
    Commit,
    Committed,
    EndEpoch,
    EpochAccepted,
    EpochDiscarded,
    Event,
    Fail,
    Failed,
    Finish,
    Instruction,
    Lane,
    Outcome,
    Publish,
    Published,
    RescaleRequested,
    Restore,
    Restored,
    RunEpoch,
    Started,
    StartTimer,
    StopRequested,
)
from arroyo_core.runtime.heartbeats import Heartbeats
from arroyo_core.runtime.lanes import Lanes, ThreadLanes
from arroyo_core.runtime.rescale import RescaleFile, RescalePoller, RescaleSignal, is_same_shape, with_former_nodes
from arroyo_core.runtime.results import EpochResult, JobResult
from arroyo_core.runtime.start import StartOptions
from arroyo_core.runtime.steps import LOOKS, EpochExecutor, JobSteps
from arroyo_core.runtime.stop import StopFile, StopPoller, StopSignal
from arroyo_core.runtime.watch import EpochTimeoutError, EpochWatch, StepWatch
from arroyo_core.state import ParquetBackend, get_storage_provider

#: How often a job restarts by itself from its last checkpoint.
MAX_RESTARTS = 20

logger = logging.getLogger(__name__)


class JobListener(Protocol):
    """Is told about a job's progress, in the thread that runs the job."""

    def on_start(self, job: JobResult) -> None:
        """Called once, before the first epoch; `job.resumed_from` says where the job goes on."""
        ...

    def on_epoch(self, result: EpochResult, job: JobResult) -> None:
        """Called for each epoch, in their order, when it is committed."""
        ...


class SilentListener:
    """For those who care for one of the two."""

    def on_start(self, job: JobResult) -> None:
        return

    def on_epoch(self, result: EpochResult, job: JobResult) -> None:
        return


class Listeners:
    """Several listeners, told one after the other."""

    def __init__(self, *listeners: JobListener) -> None:
        self._listeners = listeners

    def on_start(self, job: JobResult) -> None:
        for listener in self._listeners:
            listener.on_start(job)

    def on_epoch(self, result: EpochResult, job: JobResult) -> None:
        for listener in self._listeners:
            listener.on_epoch(result, job)


class Job:
    """Drives a plan to its end, from its latest checkpoint on.

    Each epoch is run, accepted, published, committed and marked, in this order, while the next one
    runs already; a job that dies anywhere between goes on from the last published epoch, and
    commits it again if it must. What a retry can fix is retried from there by the job itself.
    """

    def __init__(
        self,
        plan: Plan,
        executor: EpochExecutor,
        *,
        plugins: PluginSet,
        storage_url: str,
        clock: Clock | None = None,
        listener: JobListener | None = None,
        stop: StopSignal | None = None,
        start: StartOptions | None = None,
        max_restarts: int = MAX_RESTARTS,
        lanes: Lanes | None = None,
        rescale: RescaleSignal | None = None,
        replan: Callable[[int], Plan] | None = None,
        before: JobResult | None = None,
    ) -> None:
        """`replan` gives the plan for another parallelism, or raises why there is none; without, there is none.

        `before` is what the job has come to with other parallelisms in this process: this one goes on to count there.
        """
        self.plan = plan
        self.executor = executor
        self.stop = stop or StopSignal()
        self.rescale = rescale or RescaleSignal()
        self._replan = replan
        #: With which the job goes on after it was rescaled.
        self.next_plan: Plan | None = None
        #: The generation before, if it was this process.
        self._former = before.generation if before is not None else 0
        self.result = before or JobResult(job_id=plan.job_id)
        self.result.look = self._look
        self.result.plan = plan if self.result.plan is None else with_former_nodes(plan, self.result.plan)
        self.listener = listener or Listeners()
        self._lanes = lanes or ThreadLanes()
        self._backend = ParquetBackend(get_storage_provider(storage_url), plan.job_id)
        self.steps = JobSteps(
            plan,
            executor,
            plugins=plugins,
            backend=self._backend,
            clock=clock or DriverClock(),
            options=start or StartOptions(),
        )
        self._log = EventLog(self._backend.storage, plan.job_id)
        self.policy = Policy(
            interval_ms=plan.checkpoint.interval_ms,
            keep=plan.checkpoint.keep,
            max_restarts=max_restarts,
            seed=plan.job_id,
            timeout_ms=plan.checkpoint.timeout_ms,
        )
        self._controller = Controller(self.policy)
        self._started_s = 0.0
        self._has_started = False
        self._stop_file: StopFile
        self._watch: EpochWatch | None = None
        patience_s = plan.checkpoint.timeout_ms / 1000
        self._step_watch = StepWatch(patience_s=patience_s, period_s=patience_s / LOOKS)
        #: What was raised for each failure since the last restart; the controller says which of them counts.
        self._errors: dict[Failed, Exception] = {}
        self._resources = ExitStack()

    @property
    def is_ended(self) -> bool:
        return self._controller.is_ended

    def run(self) -> JobResult:
        """Run until every source is final, or until `stop` is asked for.

        Raises what failed where a retry cannot fix it, or has not for `max_restarts` times.
        """
        try:
            self.begin()
            while not self.is_ended:
                self.step()
        finally:
            self.close()
        return self.result

    def close(self) -> None:
        """End its threads, for who takes steps instead of `run`."""
        self.rescale.watch(None)
        self._resources.close()
        self._lanes.close()

    def begin(self) -> None:
        """The first step."""
        self._started_s = time.monotonic() - self.result.duration_s
        if not self._former:
            self.result.committed_us = time.time_ns() // 1000
        self._resources.enter_context(self._step_watch)
        self.stop.watch(lambda mode: self._lanes.post(StopRequested(mode)))
        self._handle(Started())

    def step(self) -> Event:
        """Wait for the next event, and do what follows from it."""
        event = self._lanes.next_event()
        self._handle(event)
        return event

    def _handle(self, event: Event) -> None:
        time_ms = self._lanes.time_ms()
        self.result.active_s = time.monotonic()
        self._log.add(event, time_ms)
        match event:
            case Restored():
                self._on_restored()
                if self.steps.recovered is not None:
                    self._on_committed(self.steps.recovered)
            case Published(needs_commit=False) | Committed():
                self._on_committed(event.epoch)
            case EpochDiscarded():
                self._end_watch()
                logger.warning("epoch %d is discarded and run again: %s", event.epoch, event.reason)
            case EpochAccepted() | Failed(lane=Lane.RUN):
                self._end_watch()
            case Failed(lane=Lane.COLLECT):
                logger.warning("garbage could not be collected, it will be tried again: %s", event.reason)
        for instruction in self._controller.handle(event, time_ms):
            self._carry_out(instruction)

    def _carry_out(self, instruction: Instruction) -> None:
        steps = self.steps
        match instruction:
            case Restore():
                self._start(Lane.PUBLISH, steps.restore)
            case RunEpoch():
                if self._watch is not None:
                    self._watch.begin(instruction.epoch)
                self._start(Lane.RUN, lambda: steps.run(instruction))
            case Publish(epoch):
                self._publish(epoch)
            case Commit(epoch):
                self._start(Lane.PUBLISH, lambda: steps.commit(epoch))
            case CollectGarbage():
                self._start(Lane.COLLECT, steps.collect)
            case StartTimer():
                self._wait(instruction)
            case EndEpoch():
                self._ask("end", lambda: self._stop_file.end_epoch(is_stop=self.stop.is_requested))
            case CancelEpoch(reason):
                self._cancel(reason)
            case Finish(outcome):
                self.result.is_finished = outcome is Outcome.FINISHED
                if outcome is not Outcome.RESCALED:
                    self.next_plan = None
                self._log.write_rest(self._backend.generation)
            case Fail(reason):
                self.result.generation = self._backend.generation
                self._log.write_rest(self._backend.generation)
                raise self._error(reason)

    def _start(self, lane: Lane, step: Callable[[], Event]) -> None:
        def work() -> Event:
            try:
                if lane is Lane.PUBLISH:
                    self._step_watch.begin(lambda: self.steps.doing)
                return step()
            except Exception as error:
                failed = Failed(lane, str(error), is_retriable=retry_hint(error) is RetryHint.WITH_BACKOFF)
                if lane is not Lane.COLLECT:
                    self._errors[failed] = error
                return failed
            finally:
                if lane is Lane.PUBLISH:
                    self._step_watch.end()

        self._lanes.start(lane, work)

    def _cancel(self, reason: str) -> None:
        if reason:
            # Said now: whatever cannot be cancelled either would hold up the restart, and its words.
            logger.warning("%s; it is cancelled", reason)
            self._errors[Failed(Lane.RUN, reason, is_retriable=True)] = EpochTimeoutError(reason)
        self._ask("be cancelled", self.executor.cancel)

    def _look(self) -> EpochResult | None:
        watch = self._watch
        return watch.counted(self.plan) if watch is not None else None

    def _end_watch(self) -> None:
        if self._watch is not None:
            self._watch.end()

    def _error(self, reason: str) -> Exception:
        """What the job ends with: the failure that counted, not one that came of it."""
        fatal = self._controller.fatal
        # Epochs that were discarded too often raised nothing.
        return self._errors[fatal] if fatal in self._errors else ExchangeError(reason)

    def _ask(self, what: str, ask: Callable[[], None]) -> None:
        """Hurry the running epoch; where that cannot be said, it ends by itself all the same."""
        try:
            ask()
        except Exception as error:
            logger.warning("the running epoch could not be asked to %s: %s", what, error)

    def _publish(self, epoch: int) -> None:
        self._log.add_epoch(self.steps.result(epoch))
        lines = self._log.take(epoch)

        def publish() -> Published:
            published = self.steps.publish(epoch)
            self._log.write(epoch, self._backend.generation, lines)
            return published

        self._start(Lane.PUBLISH, publish)

    def _wait(self, instruction: StartTimer) -> None:
        if instruction.is_restart:
            self.result.restarts += 1
            self.result.last_error = instruction.reason
            logger.warning(
                "%s; the job goes on from its last checkpoint in %.1f s",
                instruction.reason,
                instruction.delay_ms / 1000,
            )
            self._errors.clear()
        self._lanes.start_timer(instruction.number, instruction.delay_ms)

    def _on_restored(self) -> None:
        if self._has_started:
            return
        self._has_started = True
        start = self.steps.start
        for warning in start.warnings:
            logger.warning("%s", warning)
        for change in start.udf_changes:
            self._log.add_note(
                "UdfChangeAccepted", {"name": change.name, "before": change.before, "after": change.after}
            )
        for node in start.setting_changes:
            for setting in node.settings:
                self._log.add_note("SettingChangeAllowed", {"node": node.operator_id, **asdict(setting)})
        if not self._former:
            self.result.resumed_from = start.parent_epoch
        self.result.generation = self._backend.generation
        self.result.parallelism = self.plan.width
        self.result.is_finished = start.checkpoint is not None and start.checkpoint.is_final
        self._stop_file = StopFile.at(self._backend.storage.url, self.plan.job_id, self._backend.generation)
        self._resources.enter_context(StopPoller(self._stop_file, self.stop))
        heartbeats = Heartbeats(self._backend.storage, self.plan.job_id, self._backend.generation)
        period_s = self.policy.timeout_ms / LOOKS / 1000
        watch = EpochWatch(self.executor, heartbeats, self._lanes.post, period_s=period_s)
        self._watch = self._resources.enter_context(watch)
        self.listener.on_start(self.result)
        self._listen_for_rescale()

    def _listen_for_rescale(self) -> None:
        url, job_id, generation = self._backend.storage.url, self.plan.job_id, self._backend.generation
        self.rescale.watch(self._on_wish)
        self._resources.enter_context(RescalePoller(RescaleFile.at(url, job_id, generation), self.rescale))
        if self._former:
            # Whoever asked while the generations changed asked the former one.
            mode = StopFile.at(url, job_id, self._former).read()
            wish = RescaleFile.at(url, job_id, self._former).read()
            if mode is not None:
                self.stop.request(mode)
            elif wish is not None:
                self.rescale.pass_on(wish)

    def _on_wish(self, parallelism: int) -> None:
        """In whichever thread asks: the job itself goes on while it is planned."""
        try:
            if self._replan is None:
                raise SetupError("the pipeline cannot be planned again: it does not come from a file")
            plan = self._replan(parallelism)
        except ArroyoError as error:
            logger.warning("parallelism %d is refused, the job goes on as before: %s", parallelism, error)
            return
        if is_same_shape(plan, self.plan):
            logger.warning("parallelism %d changes nothing: the job goes on as before", parallelism)
            return
        self.next_plan = plan
        self._lanes.post(RescaleRequested(parallelism))

    def _on_committed(self, epoch: int) -> None:
        result = self.steps.finish(epoch)
        self.result.add(result)
        self.result.duration_s = time.monotonic() - self._started_s
        self.listener.on_epoch(result, self.result)
