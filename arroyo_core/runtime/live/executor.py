"""`LiveExecutor`: epochs in workers that live on; the driver's side."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from arroyo_core.pipeline.plan import Plan
from arroyo_core.proto import exchange_pb2 as pb
from arroyo_core.runtime.acceptance import is_last
from arroyo_core.runtime.live.crew import Crew, Launcher, LiveWorkersError
from arroyo_core.runtime.live.wire import Wrap, bare
from arroyo_core.runtime.request import EpochRequest
from arroyo_core.runtime.running import RunningTasks
from arroyo_core.runtime.showing import Screen
from arroyo_core.state.failures import StaleViewError

logger = logging.getLogger(__name__)

#: So often in a row workers may go before they have run an epoch.
TRIES = 4


class LiveExecutor:
    """Keeps workers from epoch to epoch. After any failure they are ended, and the next epoch starts others."""

    def __init__(self, launcher: Launcher, *, is_eager: bool = True, wrap: Wrap = bare) -> None:
        """With `is_eager` workers go on with the next epoch while the last one is accepted and stored.

        `wrap` is given each connection of the driver.
        """
        self._launcher = launcher
        self._wrap = wrap
        self._is_eager = is_eager
        self._crew: Crew | None = None
        self._plan: Plan | None = None
        self._lock = threading.Lock()
        self.running = RunningTasks()
        #: How many times in a row workers have gone without an epoch in between.
        self._losses = 0
        self._screen = Screen()

    def prepare(self, plan: Plan) -> None:
        """Start the workers of a plan, whose first epoch waits for them; meanwhile the driver reads its checkpoints.

        May be left out: the first epoch starts them itself then. They end with `close`, also where no epoch follows.
        """
        self.close()
        crew = Crew(plan, self._launcher, self._screen, self.running, is_eager=self._is_eager, wrap=self._wrap)
        self._plan, self._crew = plan, crew
        crew.start()

    def run_epoch(self, plan: Plan, request: EpochRequest) -> Sequence[pb.ChainReport]:
        try:
            crew = self._crew_for(plan, request)
            reports = crew.run(request)
        except BaseException as error:
            self.close()
            self._losses += isinstance(error, LiveWorkersError)
            if isinstance(error, LiveWorkersError) and error.cause is not None and self._losses >= TRIES:
                raise error.cause from error
            raise
        self._losses = 0
        errors = [report.error for report in reports if report.HasField("error")]
        if errors:
            self.close()
        if any(error.kind == StaleViewError.__name__ for error in errors):
            logger.info("an operator writes into a table that all subtasks see: epochs begin one after the other now")
            self._is_eager = False
        if not errors and is_last(reports):
            # They end while the epoch is published and committed.
            crew.dismiss()
        return reports

    def cancel(self) -> None:
        crew = self._crew
        if crew is not None:
            crew.cancel()

    def progress(self) -> str:
        crew = self._crew
        return crew.progress() if crew is not None else ""

    def close(self) -> None:
        """End the workers."""
        with self._lock:
            crew, self._crew = self._crew, None
        if crew is not None:
            crew.close()

    def _crew_for(self, plan: Plan, request: EpochRequest) -> Crew:
        """The workers that are there, if they can go on with this epoch: they may have begun the next one already."""
        if self._crew is None or self._plan is not plan or not self._crew.can_go_on_with(request):
            self.prepare(plan)
        crew = self._crew
        if crew is None:
            raise LiveWorkersError("the workers of the job were ended while they began")
        crew.gather()
        return crew
