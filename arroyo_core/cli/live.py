"""The live view of `arroyo run`: how fast, how far and how busy each operator is, redrawn in place."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from types import FrameType, TracebackType
from typing import TextIO, cast

from arroyo_core.cli.live_frame import Moment, Style, frame_lines
from arroyo_core.cli.progress import Progress
from arroyo_core.cli.screen import AboveScreen, Screen
from arroyo_core.pipeline.plan import Plan
from arroyo_core.runtime.results import EpochResult, JobResult

#: How often the clock in the view moves; the size of the terminal is looked up as often.
_REDRAW_S = 0.5


class LiveProgress(Progress):
    """Between enter and exit, shows the job at the bottom of the terminal.

    Whatever is printed meanwhile, to stdout or to stderr, appears above, if it leads to a terminal. At the end the view
    makes room for the summary; after an error it stays as it was.
    """

    def __init__(self, plan: Plan, out: TextIO, *, style: Style | None = None, redraw_s: float = _REDRAW_S) -> None:
        super().__init__(out)
        self._plan = plan
        self._screen = Screen(out)
        self._style = style or style_of(out, os.environ)
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
        self._screen.write_above(text, self.out)
        return len(text)

    def shared(self, stream: TextIO) -> TextIO:
        if not stream.isatty():
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
        size = self._screen.size()
        self._screen.draw(
            frame_lines(self._plan, self._moment(), columns=size.columns, lines=size.lines, style=self._style)
        )

    def _moment(self) -> Moment:
        now_s = time.monotonic()
        last, committed_s = self._last or (None, now_s)
        return Moment(
            now_us=time.time_ns() // 1_000,
            running_s=now_s - self._started_s,
            last=last,
            since_last_s=now_s - committed_s,
            resumed_from=self._job.resumed_from,
            source_rows=self._job.source_rows,
            restarts=self._job.restarts,
            notice=self._notice,
        )


def style_of(out: TextIO, environment: Mapping[str, str]) -> Style:
    """Colours unless `NO_COLOR` is set; blocks where the encoding has them."""
    try:
        "▏█".encode(out.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        has_blocks = False
    else:
        has_blocks = True
    return Style(has_colour=not environment.get("NO_COLOR"), has_blocks=has_blocks)
