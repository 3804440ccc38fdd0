"""What several jobs of one command show: lines with the name of the job in front, or JSON."""

from __future__ import annotations

import json
import logging
import threading
from typing import TextIO

from arroyo_core.cli.json_output import end_object, epoch_object
from arroyo_core.cli.progress import PlainProgress, Progress
from arroyo_core.pipeline.plan import Plan
from arroyo_core.runtime.job import SilentListener
from arroyo_core.runtime.job_threads import current_job
from arroyo_core.runtime.results import EpochResult, JobResult

#: Jobs write from threads of their own: each line as a whole.
_writing = threading.Lock()


class _Named(Progress):
    """Puts `heading` in front of every line."""

    heading = ""

    def write(self, text: str) -> int:
        lines = text.splitlines(keepends=True)
        with _writing:
            written = super().write("".join(self._headed(line) for line in lines))
            self.flush()
        return written

    def _headed(self, line: str) -> str:
        name = self.heading.rstrip()
        # Some lines begin with the name anyway.
        return self.heading + line.removeprefix(name).lstrip() if line.startswith(name) else self.heading + line


class _NamedLines(_Named, PlainProgress):
    pass


def named_progress(name: str, *, width: int, is_quiet: bool, out: TextIO | None = None) -> Progress:
    """Shows a job among others, whose longest name has `width` characters; quietly, its warnings only."""
    progress = _Named(out) if is_quiet else _NamedLines(out)
    progress.heading = f"{name}:".ljust(width + 2)
    return progress


class JsonLines(SilentListener):
    """The objects of one job, on a stream that others share."""

    def __init__(self, plan: Plan, out: TextIO) -> None:
        self._plan = plan
        self._out = out

    def on_epoch(self, result: EpochResult, job: JobResult) -> None:
        self._write(epoch_object(self._plan, result))

    def on_end(self, job: JobResult, *, outcome: str, error: str | None) -> None:
        self._write(end_object(self._plan, job, outcome=outcome, error=error))

    def _write(self, fields: dict[str, object]) -> None:
        with _writing:
            self._out.write(json.dumps(fields) + "\n")
            self._out.flush()


def name_job(record: logging.LogRecord) -> bool:
    """A filter of a log handler: puts the job of the thread in front of what it logs."""
    job = current_job.get()
    if job and not hasattr(record, "arroyo_job"):
        record.msg, record.args = f"{job}: {record.getMessage()}", ()
        record.arroyo_job = job
    return True
