"""The editor: a text with its mistakes at their lines, its graph while somebody types, rows of a preview, and Run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Literal

from nicegui import ui

from arroyo_console.errors import ConsoleError
from arroyo_console.pages.completion import completions
from arroyo_console.pages.frame import Site, frame, heading, html, refused, section, tell
from arroyo_console.pages.samples import SAMPLES
from arroyo_console.pages.words import Safe, empty, joined, link, rows, seconds, table, tag
from arroyo_console.pictures.graph import PicturedNode, render_graph
from arroyo_console.values import Graph, Language, NodePreview, Pipeline, Preview, Problem

#: So long after the last key the text is planned.
PAUSE_S = 0.6
PREVIEW_ROWS = 50
PREVIEW_S = 10.0
_PLANNED_FRESH_S = 60.0
_LETTERS = 300
_LABELS = {Language.YAML.value: "YAML", Language.SQL.value: "SQL"}
_HIGHLIGHTED: Mapping[Language, Literal["YAML", "SQL"]] = {Language.YAML: "YAML", Language.SQL: "SQL"}


async def editor_page(site: Site, pipeline_id: str | None, language: str) -> None:
    pipeline = None if pipeline_id is None else await site.live.run(site.console.pipeline, pipeline_id)
    with frame("New pipeline" if pipeline is None else f"Edit {pipeline.name}", here="" if pipeline else "/editor"):
        if pipeline is not None:
            html(tag("p", link(f"/pipelines/{pipeline.id}", pipeline.name)))
        heading("New pipeline" if pipeline is None else f"Edit {pipeline.name}")
        editor = _Editor(site, pipeline, Language(language) if language in set(Language) else Language.SQL)
        editor.build()
        ui.timer(0.05, editor.begin, once=True)


class _Editor:
    """The text that one browser writes."""

    def __init__(self, site: Site, pipeline: Pipeline | None, language: Language) -> None:
        self._site = site
        self._pipeline = pipeline
        self._language = language if pipeline is None else pipeline.language
        #: Of the texts that are planned the last one counts.
        self._asked = 0

    @property
    def _text(self) -> str:
        return str(self._code.value or "")

    def build(self) -> None:
        with ui.element("div").classes("columns"):
            with section("Text"):
                with ui.element("div").classes("bar"):
                    if self._pipeline is None:
                        ui.toggle(
                            _LABELS, value=self._language.value, on_change=lambda event: self._switch(event.value)
                        ).props('no-caps unelevated aria-label="language"')
                    self._preview_button = (
                        ui.button("Preview", on_click=self._preview, color=None).classes("plain").props("flat")
                    )
                    self._run_button = None
                    if self._site.may_write():
                        label = "Run" if self._pipeline is None else "Save"
                        self._run_button = (
                            ui.button(label, on_click=self._run, color=None).classes("main").props("unelevated")
                        )
                text = SAMPLES[self._language] if self._pipeline is None else self._pipeline.text
                self._code = ui.codemirror(
                    text, language=self._written(), theme="githubLight", indent="  ", on_change=self._typed
                )
                self._problems = html("").props('aria-live="polite"')
                html(tag("p", "Ctrl-Space completes. Escape, then Tab, leaves the editor.", class_="muted"))
            with (
                section("Graph"),
                ui.element("div").classes("scroll graph").props('tabindex=0 role=group aria-label="graph of the text"'),
            ):
                self._picture = html(tag("p", "Planning.", role="status", class_="empty"))
        with section("Preview", note="Runs on a sample of the sources, writes nothing."):
            with ui.element("div").classes("bar"):
                self._node = ui.select({}, label="Node", on_change=self._show_node).props("outlined dense")
                self._node.style("min-width: 14rem")
            self._node.set_visibility(False)
            self._rows = html(empty("No preview yet.", "Preview shows rows of each node.")).props('aria-live="polite"')
        self._previewed: dict[str, NodePreview] = {}

    def _written(self) -> Literal["YAML", "SQL"]:
        return _HIGHLIGHTED[self._language]

    async def begin(self) -> None:
        live, console = self._site.live, self._site.console
        await self._plan()
        try:
            words = completions(
                await live.get(console.pipeline_schema, fresh_s=3600.0),
                await live.get(console.connectors, fresh_s=300.0),
                await live.get(console.functions, fresh_s=300.0),
            )
        except ConsoleError:
            # Somebody can write without.
            words = completions({}, (), ())
        ui.run_javascript(f"arroyoComplete({self._code.id}, {json.dumps(words)}, {self._language.value!r})")

    async def _switch(self, language: str) -> None:
        was_sample = self._text.strip() in {sample.strip() for sample in SAMPLES.values()} | {""}
        self._language = Language(language)
        self._code.language = self._written()
        ui.run_javascript(f"arroyoLanguage = {self._language.value!r}")
        if was_sample:
            self._code.set_value(SAMPLES[self._language])
        await self._plan()

    async def _typed(self) -> None:
        self._asked += 1
        mine = self._asked
        await asyncio.sleep(PAUSE_S)
        if mine == self._asked:
            await self._plan()

    async def _plan(self) -> None:
        self._asked += 1
        mine, text = self._asked, self._text
        if not text.strip():
            self._picture.set_content(empty("There is no text yet.", "Write or paste a pipeline."))
            self._mark(())
            return
        try:
            graph = await self._site.live.get(self._site.console.graph, text, self._language, fresh_s=_PLANNED_FRESH_S)
        except ConsoleError as error:
            graph = Graph(problems=error.problems or (Problem(message=refused(error)),))
        # A later text may have been planned meanwhile: what is shown must be about the text that is there.
        if mine == self._asked:
            self._mark(graph.problems)
            if graph.nodes:
                self._picture.set_content(_picture(graph))
            elif graph.problems:
                self._picture.set_content(
                    empty("A text with mistakes has no graph.", "They are listed below the text.")
                )

    def _mark(self, problems: Sequence[Problem]) -> None:
        """At their lines in the editor, and in a list below it. A refusal is a note: the text may well run."""
        lines = len(self._text.splitlines()) or 1
        mistakes = [each for each in problems if not each.is_refusal]
        placed = [each for each in mistakes if each.line is not None and 1 <= each.line <= lines]
        by_line: dict[int, list[str]] = {}
        for each in placed:
            by_line.setdefault(each.line or 1, []).append(_said(each))
        self._code.decorations = [{"kind": "line", "line": line, "class": "cm-wrong"} for line in by_line]
        self._code.line_tooltips = {line: "\n".join(each) for line, each in by_line.items()}
        if not problems:
            self._problems.set_content(tag("p", "No mistakes.", class_="muted") if self._text.strip() else Safe(""))
            return
        items = [tag("li", _problem(each), class_="muted" if each.is_refusal else "problem") for each in problems]
        self._problems.set_content(
            tag("div", tag("ul", *items, class_="problems"), role="alert" if mistakes else "status")
        )
        if placed and placed[0].line is not None:
            self._code.reveal_line(placed[0].line)

    async def _preview(self) -> None:
        self._rows.set_content(tag("p", f"Running on a sample, for {seconds(PREVIEW_S)} at most.", role="status"))
        self._preview_button.disable()
        try:
            found = await self._site.live.run(
                self._site.console.preview, self._text, self._language, rows=PREVIEW_ROWS, seconds=PREVIEW_S
            )
        except ConsoleError as error:
            found = Preview(problems=error.problems, error=refused(error))
        finally:
            self._preview_button.enable()
        if found.problems:
            self._mark(found.problems)
        self._previewed = {each.node: each for each in found.nodes}
        self._node.set_visibility(bool(self._previewed))
        if not self._previewed:
            said = found.error or "The text has mistakes: they are listed below it."
            self._rows.set_content(tag("div", said, class_="notice bad", role="alert"))
            return
        names = {each.node: f"{each.node} ({rows(len(each.rows))})" for each in found.nodes}
        self._node.set_options(names, value=found.nodes[-1].node)
        self._show_node()

    def _show_node(self) -> None:
        found = self._previewed.get(self._node.value or "")
        if found is not None:
            self._rows.set_content(preview_rows(found))

    async def _run(self) -> None:
        if self._run_button is None:
            return
        self._run_button.disable()
        console, live = self._site.console, self._site.live
        try:
            if self._pipeline is None:
                made = await live.run(console.create_pipeline, self._text, self._language)
            else:
                made = await live.run(
                    console.change_pipeline, self._pipeline.id, text=self._text, language=self._language
                )
        except ConsoleError as error:
            if error.problems:
                self._mark(error.problems)
            tell(refused(error), is_bad=True)
            return
        finally:
            self._run_button.enable()
        if self._pipeline is not None and made.job.state.is_active:
            tell("Saved: it counts from the next start. Restart the pipeline to use it now.")
        ui.navigate.to(f"/pipelines/{made.id}")


def _said(problem: Problem) -> str:
    parts = [problem.message]
    if problem.suggestion:
        parts.append(f"did you mean {problem.suggestion!r}?")
    elif problem.allowed:
        parts.append(f"allowed: {', '.join(problem.allowed)}")
    return "; ".join(parts)


def _problem(problem: Problem) -> Safe:
    place = ""
    if problem.line is not None:
        place = f"Line {problem.line}" + (f", column {problem.column}" if problem.column is not None else "") + ": "
    return joined([tag("b", place), _said(problem)])


def _picture(graph: Graph) -> Safe:
    nodes = [
        PicturedNode(
            id=node.id,
            operator=node.operator,
            inputs=tuple(edge.source for edge in graph.edges if edge.target == node.id),
            parallelism=node.parallelism,
            is_sink=node.is_sink,
            notes=tuple(f"{each.label}: {each.text}" for each in node.details[:2]),
        )
        for node in graph.nodes
    ]
    return Safe(render_graph(nodes, label="graph of the text"))


def preview_rows(found: NodePreview) -> Safe:
    if not found.rows:
        return empty(
            f"{found.node} gave no row of the sample.",
            "A longer sample may have some; a window gives rows when it closes.",
        )
    names = [column.name for column in found.columns] or list(found.rows[0])
    types = {column.name: column.type for column in found.columns}
    heads = [f"{name}: {types[name]}" if name in types else name for name in names]
    lines = [[_value(row.get(name)) for name in names] for row in found.rows]
    return table(f"rows of {found.node}", heads, lines)


def _value(value: object) -> str:
    written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return written if len(written) <= _LETTERS else f"{written[:_LETTERS]}…"
