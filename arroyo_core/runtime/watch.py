"""Looks how far the running epoch is, and says so where the driver itself does not get on.

What follows for an epoch is the controller's to decide.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from types import TracebackType

from arroyo_core.api.units import format_duration_us
from arroyo_core.errors import ArroyoError, Domain, RetryHint, StateError
from arroyo_core.pipeline.plan import Plan
from arroyo_core.runtime.events import EpochSeen
from arroyo_core.runtime.heartbeats import Beat, Heartbeats, describe, fingerprint
from arroyo_core.runtime.job_threads import start_job_thread
from arroyo_core.runtime.results import EpochResult, running_result
from arroyo_core.runtime.running import Telling
from arroyo_core.runtime.steps import EpochExecutor

logger = logging.getLogger(__name__)


class EpochTimeoutError(ArroyoError):
    """An epoch made no progress for `checkpoint.timeout`."""

    domain = Domain.EXTERNAL
    retry = RetryHint.WITH_BACKOFF


class EpochWatch:
    """Looks at epochs that run for long, in a thread of its own between enter and exit."""

    def __init__(
        self, executor: EpochExecutor, heartbeats: Heartbeats, tell: Callable[[EpochSeen], None], *, period_s: float
    ) -> None:
        self._executor = executor
        self._heartbeats = heartbeats
        self._tell = tell
        self._period_s = period_s
        self._is_over = threading.Event()
        #: The running epoch, and when it began; replaced as one.
        self._running: tuple[int, float] | None = None
        #: Whether files may be there to delete.
        self._has_looked = False

    def begin(self, epoch: int) -> None:
        self._running = (epoch, time.monotonic())

    def end(self) -> None:
        self._running = None

    def __enter__(self) -> EpochWatch:
        start_job_thread(self._run, name="arroyo-watch")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        if self._has_looked:
            with contextlib.suppress(StateError):
                self._heartbeats.clear()

    def counted(self, plan: Plan) -> EpochResult | None:
        """What the running epoch has come to so far; None where nobody tells, or it has not run for long."""
        running = self._running
        if running is None or not isinstance(self._executor, Telling):
            return None
        epoch, since_s = running
        reports = self._executor.running.reports(epoch)
        if not reports:
            return None
        return running_result(plan, epoch, reports, duration_s=time.monotonic() - since_s)

    def _run(self) -> None:
        while not self._is_over.wait(self._period_s):
            running = self._running
            if running is not None and time.monotonic() - running[1] >= self._period_s:
                self._look(running[0])

    def _beats(self, epoch: int) -> list[Beat]:
        if isinstance(self._executor, Telling):
            return self._executor.running.beats(epoch)
        self._has_looked = True
        return self._heartbeats.read(epoch)

    def _look(self, epoch: int) -> None:
        try:
            tasks = self._executor.progress()
            beats = self._beats(epoch)
        except Exception as error:
            # Spark or the store does not answer now: nobody can say that nothing moves.
            logger.debug("nobody can tell how far the epoch is: %s", error)
            return
        self._tell(EpochSeen(epoch, fingerprint(tasks, beats), describe(tasks, beats)))


class StepWatch:
    """Warns while a step of the driver itself lasts long: restoring, publishing, committing.

    Nothing is cancelled: nobody can tell whether a commit that does not answer has happened.
    """

    def __init__(self, *, patience_s: float, period_s: float) -> None:
        self._patience_s = patience_s
        self._period_s = period_s
        self._is_over = threading.Event()
        #: What the step is, asked when it is told, and when it began; replaced as one.
        self._running: tuple[Callable[[], str], float] | None = None

    def begin(self, what: Callable[[], str]) -> None:
        self._running = (what, time.monotonic())

    def end(self) -> None:
        self._running = None

    def __enter__(self) -> StepWatch:
        start_job_thread(self._run, name="arroyo-step-watch")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()

    def _run(self) -> None:
        warned: tuple[object, float] | None = None
        while not self._is_over.wait(self._period_s):
            running, now = self._running, time.monotonic()
            if running is None:
                continue
            since = warned[1] if warned is not None and warned[0] is running else running[1]
            if now - since >= self._patience_s:
                warned = (running, now)
                lasted = format_duration_us(int(now - running[1]) * 1_000_000)
                logger.warning("%s has not ended for %s; the job waits for it", running[0](), lasted)
