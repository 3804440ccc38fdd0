"""How a worker tells the driver where its tasks are, while they run for long."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa

from arroyo_core.runtime.running import RunningTask, progress_message

#: How often a task tells where it is. One that ends sooner tells nothing.
PULSE_SECONDS = 1.0

logger = logging.getLogger(__name__)


class Pulse:
    """Sends what each task of a worker has counted so far, in a thread of its own until it is closed."""

    def __init__(
        self, send: Callable[[int, pa.Buffer], None], *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """`send` is given the number of a run and a `TaskProgress`; it may raise `OSError`."""
        self._send = send
        self._monotonic = monotonic
        #: The tasks that run, with their runs, and since when.
        self._tasks: list[tuple[RunningTask, int, float]] = []
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None

    @contextmanager
    def watch(self, run: int, task: RunningTask, beat_ms: int | None) -> Iterator[None]:
        """Report on a task while this is entered; at least once in `beat_ms`, which is the same for all of a job."""
        watched = (task, run, self._monotonic())
        with self._lock:
            self._tasks.append(watched)
            if self._thread is None:
                period_s = PULSE_SECONDS if beat_ms is None else min(PULSE_SECONDS, beat_ms / 1000)
                self._thread = threading.Thread(target=self._run, args=(period_s,), name="arroyo-pulse", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._tasks.remove(watched)

    def close(self) -> None:
        self._is_over.set()

    def _run(self, period_s: float) -> None:
        # Where the driver is gone, the worker notices that itself.
        with contextlib.suppress(OSError):
            while not self._is_over.wait(period_s):
                self.look(period_s)

    def look(self, period_s: float) -> None:
        """Report on those that have run for a period."""
        until = self._monotonic() - period_s
        with self._lock:
            long = [(task, run) for task, run, since in self._tasks if since <= until]
        for task, run in long:
            self._tell(task, run)

    def _tell(self, task: RunningTask, run: int) -> None:
        try:
            message = progress_message(task).SerializeToString()
        except Exception as error:
            # The task changes while it is looked at. The next look may be luckier, and this thread must go on.
            logger.debug("a task could not be looked at: %s", error)
            return
        self._send(run, pa.py_buffer(message))
