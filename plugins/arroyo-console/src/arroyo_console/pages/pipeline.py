"""One pipeline: how it is, what can be done with it, and a part for each thing that can be looked at."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from nicegui import ui

from arroyo_console.errors import ConsoleError
from arroyo_console.pages.actions import Actions
from arroyo_console.pages.checkpoints import CheckpointsPart
from arroyo_console.pages.frame import TICK_S, Site, frame, heading, html, refused
from arroyo_console.pages.letters import LettersPart
from arroyo_console.pages.logs import ConfigPart, LogPart
from arroyo_console.pages.overview import OverviewPart
from arroyo_console.pages.part import Part
from arroyo_console.pages.state import StatePart
from arroyo_console.pages.troubles import ErrorsPart
from arroyo_console.pages.words import Safe, badge, facts, joined, link, rate, rows, seconds, tag, when
from arroyo_console.pictures.markup import short
from arroyo_console.values import Pipeline, State

#: By the name in the address: the label and what is in it.
PARTS: Mapping[str, tuple[str, type[Part]]] = {
    "overview": ("Overview", OverviewPart),
    "checkpoints": ("Checkpoints", CheckpointsPart),
    "state": ("State", StatePart),
    "errors": ("Errors", ErrorsPart),
    "letters": ("Dead letters", LettersPart),
    "logs": ("Logs", LogPart),
    "config": ("Config", ConfigPart),
}
_ERROR_LETTERS = 400


async def pipeline_page(site: Site, pipeline_id: str, tab: str) -> None:
    pipeline = await site.live.get(site.console.pipeline, pipeline_id)
    with frame(pipeline.name):
        html(tag("p", link("/", "Pipelines")))
        with ui.element("div").classes("bar"):
            heading(pipeline.name)
            state = html("", "span").props("role=status").classes("live")
        notice = html("")
        actions: list[Actions] = []
        with ui.element("section").classes("card live").props('aria-label="how it is"'):
            how = html("")

        def show(now: Pipeline) -> None:
            state.set_content(badge(now.job.state))
            how.set_content(_how(now))
            notice.set_content(_notice(now))
            for each in actions:
                each.show(now)

        async def refresh(fresh_s: float = 0.0) -> None:
            try:
                show(await site.live.get(site.console.pipeline, pipeline_id, fresh_s=fresh_s))
            except ConsoleError as error:
                notice.set_content(tag("div", refused(error), class_="notice bad", role="alert"))

        if site.may_write():
            actions.append(Actions(site, pipeline, refresh))
        show(pipeline)
        ui.timer(TICK_S, lambda: refresh(fresh_s=TICK_S * 0.7), immediate=False)
        await _parts(site, pipeline, tab if tab in PARTS else "overview")


async def _parts(site: Site, pipeline: Pipeline, chosen: str) -> None:
    tabs = ui.tabs().props(
        'align=left no-caps outside-arrows mobile-arrows inline-label aria-label="parts of the pipeline"'
    )
    tabs.set_value(chosen)
    with tabs:
        for name, (label, _) in PARTS.items():
            ui.tab(name, label)
    room = ui.element("div")

    async def fill(name: str) -> None:
        with room:
            part = PARTS[name][1](site, pipeline)
            await part.build()
            if part.TICK_S:
                ui.timer(part.TICK_S, _shielded(part.refresh), immediate=False)

    async def change(name: str) -> None:
        room.clear()
        ui.navigate.history.replace(f"/pipelines/{pipeline.id}?tab={name}")
        await fill(name)

    tabs.on_value_change(lambda event: change(event.value))
    await fill(chosen)


def _shielded(refresh: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
    """What cannot be asked now is asked again at the next tick; the pipeline itself says what is wrong."""

    async def tick() -> None:
        try:
            await refresh()
        except ConsoleError:
            return

    return tick


def _how(pipeline: Pipeline) -> Safe:
    job = pipeline.job
    return facts(
        [
            ("rate", rate(job.rows_per_s) if job.state.has_process else None),
            ("watermark lag", seconds(job.watermark_lag_s)),
            ("rows behind", rows(job.backlog)),
            ("last checkpoint", when(job.committed_us) if job.committed_us else None),
            ("epoch", None if job.epoch is None else str(job.epoch)),
            ("subtasks", None if job.parallelism is None else str(job.parallelism)),
            ("restarts", str(job.restarts)),
            ("started" if job.state.is_active else "ended", _since(pipeline)),
            ("process", str(job.pid) if job.pid and job.state.has_process else None),
        ]
    )


def _since(pipeline: Pipeline) -> Safe | None:
    job = pipeline.job
    time_us = job.started_us if job.state.is_active else job.ended_us
    return when(time_us) if time_us else None


def _notice(pipeline: Pipeline) -> Safe:
    """What somebody should know at once."""
    job = pipeline.job
    where = link(f"/pipelines/{pipeline.id}?tab=errors", "Errors")
    if job.state is State.FAILED:
        said = joined(["It failed: ", short(job.error or "nobody knows why", _ERROR_LETTERS), " ", where])
        return tag("div", said, class_="notice bad", role="alert")
    if job.state is State.RESTARTING:
        said = joined(
            ["Its process ended unexpectedly; it is started again. ", short(job.error, _ERROR_LETTERS), " ", where]
        )
        return tag("div", said, class_="notice", role="alert")
    if job.state is State.CREATED:
        return tag("div", "It was never started. Start runs it.", class_="notice")
    return Safe("")
