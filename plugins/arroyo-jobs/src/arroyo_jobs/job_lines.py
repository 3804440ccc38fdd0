"""What several jobs of one command show: lines with the name of the job in front, or JSON."""

from __future__ import annotations

import json
import logging
import threading
from typing import Any, TextIO

from arroyo_core.cli.json_output import end_object, epoch_object
from arroyo_core.cli.log_lines import INFO, LogLines
from arroyo_core.cli.progress import BriefProgress, PlainProgress, Progress, ProgressKind
from arroyo_core.pipeline.plan import Plan
from arroyo_core.runtime.job import SilentListener
from arroyo_core.runtime.job_threads import current_job
from arroyo_core.runtime.results import EpochResult, JobResult

#: Jobs write from threads of their own: each line as a whole.
_writing = threading.Lock()


class NamedLines(LogLines):
    """Lines of one job among others: its name is in front of every text, or a field for tools."""

    def __init__(self, lines: LogLines, name: str, *, width: int) -> None:
        super().__init__(lines.kind)
        self._name = name
        #: Names of `width` characters have room.
        self._heading = f"{name}:".ljust(width + 2)

    def render(self, text: str, *, level: str = INFO, **fields: Any) -> str:
        # Some texts begin with the name anyway.
        plain = text.removeprefix(f"{self._name}:").lstrip()
        shown = plain if self.is_json else self._heading + plain
        return super().render(shown, level=level, **{"job": self._name, **fields})


class _Whole(Progress):
    """Writes what it is given at once."""

    def write(self, text: str) -> int:
        with _writing:
            written = super().write(text)
            self.flush()
        return written


class _WholePlain(_Whole, PlainProgress):
    pass


class _WholeBrief(_Whole, BriefProgress):
    pass


_KINDS: dict[ProgressKind, type[Progress]] = {
    ProgressKind.PLAIN: _WholePlain,
    ProgressKind.BRIEF: _WholeBrief,
    ProgressKind.NONE: _Whole,
}


def named_progress(
    name: str, kind: ProgressKind, lines: LogLines, *, width: int, out: TextIO | None = None
) -> Progress:
    """Shows a job among others, whose longest name has `width` characters."""
    return _KINDS[kind](out, lines=NamedLines(lines, name, width=width))


class JsonLines(SilentListener):
    """The objects of one job, on a stream that others share."""

    def __init__(self, plan: Plan, out: TextIO) -> None:
        self._plan = plan
        self._out = out

    def on_epoch(self, result: EpochResult, job: JobResult) -> None:
        self._write(epoch_object(job.plan or self._plan, result))

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
