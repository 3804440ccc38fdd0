"""What went wrong in a job, with tracebacks, and how its processes ended."""

from __future__ import annotations

from collections.abc import Sequence

from arroyo_console.errors import ConsoleError
from arroyo_console.pages.frame import TICK_S, html, refused, section
from arroyo_console.pages.part import Part
from arroyo_console.pages.words import UNKNOWN, Safe, badge, empty, joined, loading, table, tag, when
from arroyo_console.values import Job, JobError, JobRun, StateChange

_SHOWN = 50


class ErrorsPart(Part):
    TICK_S = TICK_S * 2

    async def build(self) -> None:
        with section("Errors"):
            self._errors = html(loading()).classes("live")
        with section("Processes", note="Each start of the job, newest first."):
            self._runs = html("").classes("live")
        with section("What happened"):
            self._changes = html("").classes("live")
        try:
            await self.refresh()
        except ConsoleError as error:
            self._errors.set_content(empty(refused(error)))

    async def refresh(self) -> None:
        live, console = self.site.live, self.site.console
        self._errors.set_content(_errors(await live.get(console.job_errors, self.job_id, limit=_SHOWN)))
        job: Job = await live.get(console.job, self.job_id)
        self._runs.set_content(_runs(job.runs[:_SHOWN]))
        self._changes.set_content(_changes(job.changes[:_SHOWN]))


def _errors(errors: Sequence[JobError]) -> Safe:
    if not errors:
        return empty("Nothing went wrong.")
    return joined(_error(each) for each in errors)


def _error(error: JobError) -> Safe:
    places = [
        f"node {error.node}" if error.node else "",
        f"subtask {error.subtask}" if error.subtask is not None else "",
        f"epoch {error.epoch}" if error.epoch is not None else "",
        f"process {error.run}" if error.run is not None else "",
    ]
    where = ", ".join(filter(None, places))
    went_on = tag("span", "went on by itself", class_="badge warn") if error.is_recovered else ""
    head = joined([when(error.at_us), f" {where} " if where else " ", went_on])
    trace: object = ""
    if error.traceback:
        written = tag("pre", error.traceback, tabindex="0", role="group", aria_label="traceback")
        trace = tag("details", tag("summary", "Traceback"), written)
    return tag(
        "article",
        tag("p", head, class_="muted"),
        tag("pre", error.message, tabindex="0", role="group", aria_label="error"),
        trace,
    )


def _runs(runs: Sequence[JobRun]) -> Safe:
    if not runs:
        return empty("No process has been started yet.", "Start runs the pipeline.")
    lines = [
        [
            str(each.number),
            when(each.started_us),
            when(each.ended_us) if each.ended_us else "runs",
            str(each.pid or UNKNOWN),
            UNKNOWN if each.exit_code is None else str(each.exit_code),
            each.reason,
            "started again by itself" if each.is_restart else "started by somebody",
            str(each.version),
        ]
        for each in runs
    ]
    heads = ("process", "started", "ended", "pid", "exit code", "why it ended", "how it came", "text")
    return table("processes", heads, lines, right=(0, 3, 4))


def _changes(changes: Sequence[StateChange]) -> Safe:
    if not changes:
        return empty("Nothing yet.")
    lines = [[when(each.at_us), badge(each.state), each.reason] for each in changes]
    return table("changes of state", ("when", "state", "why"), lines)
