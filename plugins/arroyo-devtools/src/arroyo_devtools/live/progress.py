"""The live view of `arroyo run`: how fast, how far and how busy each operator is, redrawn in place."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from types import FrameType, TracebackType
from typing import TextIO, cast

from arroyo_core.cli.progress import Progress
from arroyo_core.cli.terminal import open_console
from arroyo_core.pipeline.plan import Plan
from arroyo_core.runtime.results import EpochResult, JobResult
from arroyo_devtools.live.frame import LiveFrame, Moment
from arroyo_devtools.live.screen import AboveScreen, Screen

#: How often the clock in the view moves; the size of the terminal is looked up as often.
_REDRAW_S = 0.5


class LiveProgress(Progress):
    """Between enter and exit, shows the job at the bottom of the terminal.

    Whatever is printed meanwhile, to stdout or to stderr, appears above, if it leads to this terminal. At the end the
    view makes room for the summary; after an error it stays as it was.
    """

    def __init__(self, plan: Plan, out: TextIO, *, redraw_s: float = _REDRAW_S) -> None:
        super().__init__(out)
        self._plan = plan
        self._screen = Screen(open_console(out))
        self._redraw_s = redraw_s
        self._started_s = time.monotonic()
        self._job = JobResult(job_id=plan.job_id)
        # Replaced as one: the thread that draws sees both or neither.
        self._last: tuple[EpochResult, float] | None = None
        self._notice = ""
        self._ended = threading.Event()
        self._resources = ExitStack()

    def __enter__(self) -> LiveProgress:
        resources = self._resources
        resources.enter_context(redirect_stdout(self.shared(sys.stdout)))
        resources.enter_context(redirect_stderr(self.shared(sys.stderr)))
        if threading.current_thread() is threading.main_thread():
            # Back from Ctrl-Z, with a prompt and other things below the view.
            previous = signal.signal(signal.SIGCONT, self._on_continued)
            resources.callback(signal.signal, signal.SIGCONT, previous)
        self._draw()
        thread = threading.Thread(target=self._run, name="live view", daemon=True)
        thread.start()
        resources.callback(thread.join)
        resources.callback(self._ended.set)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._resources.close()
        self._screen.close(is_kept=kind is not None)

    def on_start(self, job: JobResult) -> None:
        self._job = job
        super().on_start(job)

    def on_epoch(self, result: EpochResult, job: JobResult) -> None:
        self._job = job
        self._last = (result, time.monotonic())
        super().on_epoch(result, job)
        self._draw()

    def on_stop_requested(self, text: str) -> None:
        self._notice = text

    def write(self, text: str) -> int:
        self._screen.write_above(text)
        return len(text)

    def shared(self, stream: TextIO) -> TextIO:
        if not _is_same_terminal(stream, self.out):
            return stream
        above = AboveScreen(self._screen, stream)
        self._resources.callback(above.close)
        return cast(TextIO, above)

    def _on_continued(self, number: int, frame: FrameType | None) -> None:
        self._screen.forget()

    def _run(self) -> None:
        while not self._ended.wait(self._redraw_s):
            self._draw()

    def _draw(self) -> None:
        self._screen.draw(LiveFrame(self._job.plan or self._plan, self._moment()))

    def _moment(self) -> Moment:
        now_s = time.monotonic()
        last, committed_s = self._last or (None, now_s)
        return Moment(
            now_us=time.time_ns() // 1_000,
            running_s=now_s - self._started_s,
            last=last,
            since_last_s=now_s - committed_s,
            running=self._job.look(),
            resumed_from=self._job.resumed_from,
            source_rows=self._job.source_rows,
            restarts=self._job.restarts,
            spark_ui=self._job.spark_ui,
            notice=self._notice,
        )


def _is_same_terminal(one: TextIO, other: TextIO) -> bool:
    try:
        return one.isatty() and os.fstat(one.fileno()).st_rdev == os.fstat(other.fileno()).st_rdev
    except (OSError, ValueError):
        return False
