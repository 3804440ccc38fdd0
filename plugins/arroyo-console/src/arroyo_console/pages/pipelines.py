"""The list of pipelines: how each is, how fast, how far behind."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from nicegui import ui

from arroyo_console.errors import ConsoleError
from arroyo_console.pages.frame import TICK_S, Site, frame, heading, html, refused
from arroyo_console.pages.words import Safe, badge, empty, joined, link, rate, rows, seconds, table, tag, when
from arroyo_console.pictures.charts import sparkline
from arroyo_console.pictures.markup import short
from arroyo_console.values import JobMetrics, Page, Pipeline, State

#: Pipelines on a page.
SHOWN = 50
#: Of the curve of rates beside each pipeline.
_EPOCHS = 40
#: The curves are asked for less often than the rest: each is a query of its own.
_CURVE_S = 10.0
_HEADS = ("pipeline", "state", "rate", "recent rates", "watermark lag", "rows behind", "last checkpoint", "subtasks")
_ERROR_LETTERS = 120


class _List:
    """What one browser looks at: which part of the list, and what it searches for."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._search = ""
        #: With what to ask for this page, and for those before it.
        self._afters: list[str | None] = [None]
        self._next: str | None = None
        self._curves: Mapping[str, Safe] = {}

    def build(self) -> None:
        with ui.element("div").classes("bar wide"):
            heading("Pipelines")
            if self._site.may_write():
                ui.button("New pipeline", on_click=lambda: ui.navigate.to("/editor"), color=None).classes("main").props(
                    "unelevated"
                )
        with ui.element("search").classes("bar").props('aria-label="pipelines"'):
            ui.input("Search by name", on_change=lambda event: self._look_for(event.value)).props(
                "outlined dense debounce=300 clearable"
            ).classes("fill")
        self._table = html("").classes("live rows-as-cards card")
        with ui.element("nav").classes("bar").props('aria-label="pages of the list"'):
            self._previous = ui.button("Previous", on_click=self._go_back, color=None).classes("plain").props("flat")
            self._following = ui.button("Next", on_click=self._go_on, color=None).classes("plain").props("flat")
            self._count = ui.label().classes("muted").props("role=status")

    async def refresh(self, *, has_curves: bool = True) -> None:
        live, console = self._site.live, self._site.console
        try:
            page = await live.get(console.pipelines, search=self._search, limit=SHOWN, after=self._afters[-1])
        except ConsoleError as error:
            self._table.set_content(tag("p", refused(error), role="alert"))
            return
        if has_curves:
            await self._ask_for_curves(page.items)
        self._next = page.next
        self._table.set_content(self._rendered(page))
        is_paged = len(self._afters) > 1 or page.next is not None
        for button, is_there in ((self._previous, len(self._afters) > 1), (self._following, page.next is not None)):
            button.set_visibility(is_paged)
            button.set_enabled(is_there)
        first = (len(self._afters) - 1) * SHOWN
        of = f"{first + 1} to {first + len(page.items)} of {page.total:,}" if is_paged else f"{page.total:,} in all"
        self._count.set_text(of if page.items else "")

    async def _ask_for_curves(self, pipelines: Sequence[Pipeline]) -> None:
        live, console = self._site.live, self._site.console
        jobs = [each.job.id for each in pipelines if each.job.epoch is not None]
        answers = await asyncio.gather(
            *(live.get(console.job_metrics, job, history=_EPOCHS, fresh_s=_CURVE_S) for job in jobs),
            return_exceptions=True,
        )
        self._curves = {
            job: _curve(answer) for job, answer in zip(jobs, answers, strict=True) if isinstance(answer, JobMetrics)
        }

    def _rendered(self, page: Page[Pipeline]) -> Safe:
        if page.items:
            lines = [self._line(pipeline) for pipeline in page.items]
            return table("pipelines and how they are", _HEADS, lines, right=(2, 4, 5, 7))
        if self._search:
            return empty(f"No pipeline has {self._search!r} in its name.", "Search for another part of the name.")
        return empty(
            "There is no pipeline yet.",
            joined(
                ["Write one, or paste one: ", link("/editor", "New pipeline"), ". `arroyo --server` makes them too."]
            ),
        )

    def _line(self, pipeline: Pipeline) -> list[object]:
        job = pipeline.job
        name: list[object] = [link(f"/pipelines/{pipeline.id}", pipeline.name)]
        if job.error and job.state in (State.FAILED, State.RESTARTING):
            name.append(tag("div", short(job.error, _ERROR_LETTERS), class_="muted"))
        return [
            joined(name),
            badge(job.state),
            rate(job.rows_per_s if job.state.has_process else None),
            self._curves.get(job.id, Safe("")),
            seconds(job.watermark_lag_s),
            rows(job.backlog),
            when(job.committed_us),
            "" if job.parallelism is None else str(job.parallelism),
        ]

    async def _look_for(self, text: str | None) -> None:
        self._search, self._afters = text or "", [None]
        await self.refresh()

    async def _go_on(self) -> None:
        if self._next is not None:
            self._afters.append(self._next)
            await self.refresh()

    async def _go_back(self) -> None:
        if len(self._afters) > 1:
            self._afters.pop()
            await self.refresh()


def _curve(metrics: JobMetrics) -> Safe:
    values = [point.rows_per_s for point in metrics.history]
    label = f"{len(values)} epochs, last {rate(values[-1])}, greatest {rate(max(values))}" if values else "rates"
    return Safe(sparkline(values, label=label))


async def pipelines_page(site: Site) -> None:
    with frame("Pipelines", here="/"):
        shown = _List(site)
        shown.build()
        # Without the curves: each is a query, and the list must not wait for fifty.
        await shown.refresh(has_curves=False)
        ui.timer(TICK_S, shown.refresh)
