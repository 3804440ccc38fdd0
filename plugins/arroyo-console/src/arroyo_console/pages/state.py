"""The state of a job: rows of its tables at an epoch, those of a key, and what changed between two epochs."""

from __future__ import annotations

import json
from collections.abc import Sequence

from nicegui import ui

from arroyo_console.errors import ConsoleError
from arroyo_console.pages.frame import html, refused, section
from arroyo_console.pages.part import Part
from arroyo_console.pages.words import Safe, empty, joined, loading, rows, size, table, tag
from arroyo_console.values import TableInfo, TableRows

_SHOWN = 200
_LETTERS = 400
#: The column of a difference that says what happened to a row.
_CHANGE = "_change"
_CHANGES = {"+": "+ came", "-": "- went"}


class StatePart(Part):
    async def build(self) -> None:
        with section("Tables", note="Of one checkpoint, as a restart would read them."):
            with ui.element("div").classes("bar end"):
                self._epoch = (
                    ui.select([], label="Epoch", on_change=self._list).props("outlined dense").style("min-width: 8rem")
                )
                ui.button("Newest", on_click=self._load, color=None).classes("plain").props("flat").tooltip(
                    "Look for newer epochs"
                )
            self._tables = html(loading())
        with section("Rows"):
            with ui.element("div").classes("bar end"):
                self._table = ui.select({}, label="Table").props("outlined dense").style("min-width: 12rem")
                self._key = ui.input("Key or value (empty: all)").props("outlined dense clearable").classes("fill")
                self._before = (
                    ui.select({}, label="Compare with epoch", value=None)
                    .props("outlined dense clearable")
                    .style("min-width: 12rem")
                )
                self._button = ui.button("Read", on_click=self._read, color=None).classes("main").props("unelevated")
                # Until there is something to read.
                self._button.disable()
            self._key.on("keydown.enter", self._read)
            self._rows = html("").props('aria-live="polite"')
        await self._load()

    async def _load(self) -> None:
        """Take the newest epochs."""
        try:
            found = await self.site.live.get(self.site.console.checkpoints, self.job_id, limit=_SHOWN)
        except ConsoleError as error:
            self._tables.set_content(empty(refused(error)))
            return
        epochs = [each.epoch for each in found if not each.error]
        if not epochs:
            self._tables.set_content(
                empty("There is no checkpoint yet.", "State can be read once an epoch is committed.")
            )
            return
        self._before.set_options({epoch: f"epoch {epoch}" for epoch in epochs}, value=None)
        is_same = self._epoch.value == epochs[0]
        self._epoch.set_options(epochs, value=epochs[0])
        if is_same:
            await self._list()

    async def _list(self) -> None:
        epoch = self._epoch.value
        try:
            found = await self.site.live.get(self.site.console.tables, self.job_id, epoch=epoch, fresh_s=30.0)
        except ConsoleError as error:
            self._tables.set_content(empty(refused(error)))
            return
        self._tables.set_content(_tables(found, epoch))
        # Node and table have no blank in their names; the value of a choice is one text.
        names = {f"{each.node} {each.table}": f"{each.node}.{each.table}" for each in found}
        biggest = max(found, key=lambda each: each.rows, default=None)
        chosen = self._table.value if self._table.value in names else None
        self._table.set_options(names, value=chosen or (f"{biggest.node} {biggest.table}" if biggest else None))
        self._button.set_enabled(bool(names))

    async def _read(self) -> None:
        if self._table.value is None:
            return
        node, _, name = self._table.value.partition(" ")
        key, before, epoch = self._key.value or None, self._before.value, self._epoch.value
        live, console = self.site.live, self.site.console
        self._rows.set_content(tag("p", "Reading.", role="status"))
        try:
            if before is None:
                found = await live.run(console.table_rows, self.job_id, node, name, epoch=epoch, key=key, limit=_SHOWN)
            elif before >= epoch:
                self._rows.set_content(tag("p", f"Compare epoch {epoch} with one before it.", role="alert"))
                return
            else:
                found = await live.run(
                    console.table_difference, self.job_id, node, name, before=before, epoch=epoch, key=key, limit=_SHOWN
                )
        except ConsoleError as error:
            self._rows.set_content(tag("p", refused(error), role="alert"))
            return
        self._rows.set_content(rendered_rows(found, key))


def _tables(found: Sequence[TableInfo], epoch: int) -> Safe:
    if not found:
        return empty("No operator has state in this epoch.", "Only operators that remember something have tables.")
    lines = [
        [
            f"{each.node}.{each.table}",
            each.kind.replace("_", " "),
            rows(each.rows),
            size(each.bytes),
            f"{each.files:,}",
            str(each.version),
        ]
        for each in found
    ]
    return table(
        f"tables at epoch {epoch}", ("table", "kind", "rows", "size", "files", "version"), lines, right=range(2, 6)
    )


def rendered_rows(found: TableRows, key: str | None) -> Safe:
    """Rows of a table, or of a difference, as JSON has their values."""
    of = f"{found.node}.{found.table} at epoch {found.epoch}"
    if found.before_epoch is not None:
        of += f", since epoch {found.before_epoch}"
    if not found.rows:
        what = "Nothing changed" if found.before_epoch is not None else "No rows"
        return empty(f"{what} in {of}{f' with {key!r}' if key else ''}.", "Try another key, or no key at all.")
    said = f"{rows(found.total)} of {of}" + (
        f"; the first {len(found.rows):,} are shown" if found.total > len(found.rows) else ""
    )
    names = [column.name for column in found.columns] or list(found.rows[0])
    lines = [[_value(name, row.get(name)) for name in names] for row in found.rows]
    return joined(
        [tag("p", said, role="status"), table(of, ["change" if name == _CHANGE else name for name in names], lines)]
    )


def _value(name: str, value: object) -> object:
    if name == _CHANGE:
        kind = "ok" if value == "+" else "bad"
        return tag("span", _CHANGES.get(str(value), str(value)), class_=f"badge {kind}")
    written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return written if len(written) <= _LETTERS else f"{written[:_LETTERS]}…"
