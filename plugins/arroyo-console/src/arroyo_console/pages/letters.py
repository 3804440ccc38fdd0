"""Dead letters: the rows that failed, and replaying them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from nicegui import ui

from arroyo_console.errors import ConsoleError
from arroyo_console.pages.frame import html, refused, section, tell
from arroyo_console.pages.part import Part
from arroyo_console.pages.words import UNKNOWN, Safe, empty, joined, loading, table, tag
from arroyo_console.values import Letter, LetterSummary, ReplayResult

_SHOWN = 100


class LettersPart(Part):
    async def build(self) -> None:
        with section("Dead letters", note="Rows that an operator could not take."):
            self._nodes = html(loading())
        with section("Rows"):
            with ui.element("div").classes("bar end"):
                self._node = (
                    ui.select({}, label="Node", clearable=True).props("outlined dense").style("min-width: 10rem")
                )
                self._error = ui.input("Error has this in it").props("outlined dense clearable").classes("fill")
                self._all = ui.checkbox("Also replayed ones")
                ui.button("Show", on_click=self._show, color=None).classes("plain").props("flat")
            self._rows = html("").props('aria-live="polite"')
        if self.site.may_write():
            with section(
                "Replay",
                note="Feeds these open letters through the newest text, from the node on in which they failed.",
            ):
                with ui.element("div").classes("bar"):
                    ui.button("Try", on_click=lambda: self._replay(is_dry_run=True), color=None).classes("plain").props(
                        "flat"
                    ).tooltip("Says what would be replayed")
                    ui.button("Replay", on_click=lambda: self._replay(is_dry_run=False), color=None).classes(
                        "main"
                    ).props("unelevated")
                self._result = html("").props("role=status")
        await self._load()

    async def _load(self) -> None:
        try:
            found = await self.site.live.run(self.site.console.letters, self.job_id)
        except ConsoleError as error:
            self._nodes.set_content(empty(refused(error)))
            return
        self._nodes.set_content(_summaries(found))
        self._node.set_options(sorted({each.node for each in found}))
        if found:
            await self._show()

    async def _show(self) -> None:
        try:
            found = await self.site.live.run(
                self.site.console.letters_of,
                self.job_id,
                node=self._node.value or None,
                error=self._error.value or None,
                limit=_SHOWN,
                is_all=self._all.value,
            )
        except ConsoleError as error:
            self._rows.set_content(tag("p", refused(error), role="alert"))
            return
        self._rows.set_content(_letters(found))

    async def _replay(self, *, is_dry_run: bool) -> None:
        self._result.set_content(tag("p", "Looking." if is_dry_run else "Replaying."))
        try:
            result = await self.site.live.run(
                self.site.console.replay_letters,
                self.job_id,
                node=self._node.value or None,
                error=self._error.value or None,
                is_dry_run=is_dry_run,
            )
        except ConsoleError as error:
            self._result.set_content(tag("p", refused(error), role="alert"))
            return
        self._result.set_content(_result(result))
        if not is_dry_run:
            if not result.error:
                tell("Replayed.")
            await self._load()


def _summaries(found: Sequence[LetterSummary]) -> Safe:
    if not found:
        return empty(
            "There are no dead letters.",
            "A pipeline with `on_error: {dead_letters: URL}` writes rows there that fail, and goes on.",
        )
    lines = [
        [
            each.node,
            each.operator,
            f"{each.letters:,}",
            f"{each.open:,}",
            f"{each.replayed:,}",
            each.first,
            each.last,
            each.newest_error,
        ]
        for each in found
    ]
    heads = ("node", "operator", "letters", "open", "replayed", "first", "last", "newest error")
    return table("dead letters by node", heads, lines, right=(2, 3, 4))


def _letters(found: Sequence[Letter]) -> Safe:
    if not found:
        return empty("No such letter is open.", "Clear the node and the error, or show replayed ones too.")
    lines = [
        [
            each.time[:19],
            each.node,
            UNKNOWN if each.epoch is None else str(each.epoch),
            each.state,
            f"{each.error} at {each.position}" if each.position else each.error,
            tag("code", json.dumps(each.row, ensure_ascii=False, default=str)),
        ]
        for each in found
    ]
    return table("dead letters", ("time", "node", "epoch", "is", "error", "row"), lines, right=(2,))


def _result(result: ReplayResult) -> Safe:
    lines = "\n".join(result.lines) or "No open letter is meant: nothing is replayed."
    failed = [tag("p", result.error, role="alert", class_="problem")] if result.error else []
    return joined([*failed, tag("pre", lines, tabindex="0", role="group", aria_label="what the replay came to")])
