"""What a job writes, and the texts that it was started with."""

from __future__ import annotations

import asyncio
from collections import deque

from nicegui import ui

from arroyo_console.errors import ConsoleError
from arroyo_console.pages.frame import TICK_S, html, refused, section
from arroyo_console.pages.part import Part
from arroyo_console.pages.words import empty, facts, joined, link, tag, when
from arroyo_console.values import LogLines

#: Lines that a page keeps.
KEPT = 1_000
_KINDS = {"log": "Log", "output": "Rows that its sinks print"}


class LogPart(Part):
    TICK_S = TICK_S

    async def build(self) -> None:
        self._kind = "log"
        self._run: int | None = None
        self._lines: deque[str] = deque(maxlen=KEPT)
        self._offset: int | None = None
        self._of: int | None = None
        # A choice and a tick may come at the same time: each goes on where the other ended.
        self._reading = asyncio.Lock()
        with section("Logs"):
            with ui.element("div").classes("bar end"):
                ui.select(_KINDS, value="log", label="What", on_change=lambda event: self._change(event.value)).props(
                    "outlined dense"
                ).style("min-width: 14rem")
                self._runs = (
                    ui.select({}, label="Process", on_change=lambda event: self._change_run(event.value))
                    .props("outlined dense")
                    .style("min-width: 12rem")
                )
                self._filter = (
                    ui.input("Only lines with", on_change=self._show)
                    .props("outlined dense clearable debounce=200")
                    .classes("fill")
                )
            self._text = html("", "pre").classes("log").props('tabindex=0 role=log aria-label="lines"')
        await self._load_runs()
        await self._start_over()

    async def _load_runs(self) -> None:
        try:
            job = await self.site.live.get(self.site.console.job, self.job_id)
        except ConsoleError:
            return
        self._runs.set_options({0: "newest", **{each.number: f"process {each.number}" for each in job.runs}}, value=0)

    async def _change(self, kind: str) -> None:
        self._kind = kind
        await self._start_over()

    async def _change_run(self, run: int) -> None:
        self._run = run or None
        await self._start_over()

    async def _start_over(self) -> None:
        async with self._reading:
            self._forget()
            try:
                await self._read()
            except ConsoleError as error:
                self._text.set_content(tag("span", refused(error)))

    def _forget(self) -> None:
        self._lines.clear()
        self._offset = self._of = None

    async def refresh(self) -> None:
        async with self._reading:
            await self._read()

    async def _read(self) -> None:
        found = await self._ask()
        if self._of is not None and found.run != self._of:
            # The job was started again: its log begins again.
            self._forget()
            found = await self._ask()
        self._of, self._offset = found.run, found.offset
        self._lines.extend(found.lines)
        self._show()

    async def _ask(self) -> LogLines:
        call = self.site.console.job_log if self._kind == "log" else self.site.console.job_output
        return await self.site.live.get(call, self.job_id, lines=KEPT, offset=self._offset, run=self._run)

    def _show(self) -> None:
        word = (self._filter.value or "").casefold()
        lines = [line for line in self._lines if word in line.casefold()]
        nothing = "No line has that in it." if word else "Nothing has been written yet."
        self._text.set_content(tag("span", "\n".join(lines) or nothing))


class ConfigPart(Part):
    async def build(self) -> None:
        with section("Config"):
            html(
                facts(
                    [
                        ("language", self.pipeline.language.value),
                        ("text", f"version {self.pipeline.version}"),
                        (
                            "subtasks",
                            "as the text says" if self.pipeline.parallelism is None else str(self.pipeline.parallelism),
                        ),
                        ("created", when(self.pipeline.created_us)),
                        ("checkpoints", self.pipeline.job.checkpoint_url),
                    ]
                )
            )
            if self.site.may_write():
                html(tag("p", link(f"/editor/{self.pipeline.id}", "Edit the text")))
            html(tag("pre", self.pipeline.text, tabindex="0", role="group", aria_label="text of the pipeline"))
        with section("Earlier texts"):
            try:
                versions = await self.site.live.get(self.site.console.pipeline_versions, self.pipeline.id)
            except ConsoleError as error:
                html(empty(refused(error)))
                return
            earlier = [each for each in versions if each.version != self.pipeline.version]
            if not earlier:
                html(empty("It has had no other text."))
            for each in earlier:
                head = tag("summary", joined([f"version {each.version}, ", when(each.created_us)]))
                html(
                    tag(
                        "details",
                        head,
                        tag("pre", each.text, tabindex="0", role="group", aria_label=f"version {each.version}"),
                    )
                )
