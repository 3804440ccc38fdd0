"""What somebody can do with a pipeline; what ends something asks first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from nicegui import ui

from arroyo_console.pages.frame import Site, attempt, tell
from arroyo_console.values import Pipeline, State, Wish

#: The ways to stop, with what each means.
STOPS = (
    (Wish.CHECKPOINT, "Stop at a checkpoint", "What was read is committed; it goes on there."),
    (Wish.GRACEFUL, "Stop gracefully", "The same, and sources and operators finish what they have begun."),
    (Wish.IMMEDIATE, "Stop at once", "The running epoch is given up, and is run again after a start."),
    (Wish.KILL, "Kill the process", "As if the machine had failed; it goes on from its last checkpoint."),
)
MOST_SUBTASKS = 1024


class Actions:
    """The buttons of one pipeline, as its state allows."""

    def __init__(self, site: Site, pipeline: Pipeline, refresh: Callable[[], Awaitable[None]]) -> None:
        self._site = site
        self._pipeline = pipeline
        self._refresh = refresh
        self._build()

    def _build(self) -> None:
        with ui.element("div").classes("bar").props('role="group" aria-label="what to do with the pipeline"'):
            self._start = _button("Start", self._run, "main")
            with (
                ui.button("Stop", color=None).classes("plain").props("flat icon-right=arrow_drop_down") as self._stop,
                ui.menu(),
            ):
                for wish, label, meaning in STOPS:
                    item = ui.menu_item(on_click=lambda wish=wish, label=label: self._ask_to_stop(wish, label))
                    with item, ui.item_section():
                        ui.item_label(label)
                        ui.item_label(meaning).props("caption").classes("muted")
            self._restart = _button("Restart", self._ask_to_restart)
            self._rescale = _button("Rescale", self._ask_to_rescale)
            _button("Edit", lambda: ui.navigate.to(f"/editor/{self._pipeline.id}"))
            self._delete = _button("Delete", self._ask_to_delete, "danger")

    def show(self, pipeline: Pipeline) -> None:
        """As the pipeline is now."""
        self._pipeline = pipeline
        state = pipeline.job.state
        self._start.set_visibility(not state.is_active)
        self._stop.set_visibility(state.is_active)
        self._restart.set_visibility(state in (State.RUNNING, State.STARTING, State.RESTARTING))
        self._delete.set_enabled(not state.is_active)

    async def _run(self) -> None:
        await self._change("Started.", wish=Wish.START)

    async def _ask_to_stop(self, wish: Wish, label: str) -> None:
        meaning = next(text for each, _, text in STOPS if each is wish)
        if await self._is_sure(f"{label}?", meaning, label):
            await self._change("Asked it to stop.", wish=wish)

    async def _ask_to_restart(self) -> None:
        with _dialog("Restart the pipeline?") as dialog, ui.card().classes("ask"):
            _title("Restart the pipeline?")
            ui.label("It stops at a checkpoint and goes on there, with its newest text.")
            forced = ui.checkbox("Kill it where it does not answer")
            fresh = ui.checkbox("Forget its state: begin from the start of its sources")
            _answers(dialog, "Restart")
        if await dialog and await attempt(
            self._site,
            self._site.console.restart_pipeline,
            self._pipeline.id,
            is_forced=forced.value,
            is_fresh=fresh.value,
        ):
            tell("It is being restarted.")
        await self._refresh()

    async def _ask_to_rescale(self) -> None:
        now = self._pipeline.job.parallelism or self._pipeline.parallelism or 1
        with _dialog("Rescale the pipeline") as dialog, ui.card().classes("ask"):
            _title("Rescale the pipeline")
            ui.label(f"It has {now} {'subtask' if now == 1 else 'subtasks'} for each operator now. State moves along.")
            number = ui.number("Subtasks", value=now, min=1, max=MOST_SUBTASKS, precision=0).props("outlined autofocus")
            _answers(dialog, "Rescale")
        if await dialog:
            if number.value is None or not 1 <= int(number.value) <= MOST_SUBTASKS:
                tell(f"Give a number from 1 to {MOST_SUBTASKS:,}.", is_bad=True)
            else:
                await self._change(f"Rescaling to {int(number.value)}.", parallelism=int(number.value))

    async def _ask_to_delete(self) -> None:
        meaning = "Its text and its history go. Its checkpoints and its output stay where they are."
        is_sure = await self._is_sure(f"Delete {self._pipeline.name}?", meaning, "Delete")
        if is_sure and await attempt(self._site, self._site.console.delete_pipeline, self._pipeline.id):
            ui.navigate.to("/")

    async def _is_sure(self, question: str, meaning: str, label: str) -> bool:
        with _dialog(question) as dialog, ui.card().classes("ask"):
            _title(question)
            ui.label(meaning)
            _answers(dialog, label)
        return bool(await dialog)

    async def _change(self, done: str, *, wish: Wish | None = None, parallelism: int | None = None) -> None:
        call = self._site.console.change_pipeline
        if await attempt(self._site, call, self._pipeline.id, wish=wish, parallelism=parallelism):
            tell(done)
        await self._refresh()


def _button(label: str, act: Callable[[], object], kind: str = "plain") -> ui.button:
    return ui.button(label, on_click=act, color=None).classes(kind).props("unelevated" if kind == "main" else "flat")


def _dialog(title: str) -> ui.dialog:
    """It keeps the focus, and gives it back; Escape is Cancel."""
    dialog = ui.dialog()
    # Not by `props`, which parses its text: a title may have the name of a pipeline.
    dialog.props["aria-label"] = title
    # Not sooner: until it is hidden it has the focus, and is to give it back.
    dialog.on("hide", dialog.delete)
    return dialog


def _title(title: str) -> None:
    ui.label(title).classes("title").props("role=heading aria-level=2")


def _answers(dialog: ui.dialog, label: str) -> None:
    with ui.element("div").classes("bar"):
        ui.button(label, on_click=lambda: dialog.submit(True), color=None).classes("main").props("unelevated")
        ui.button("Cancel", on_click=lambda: dialog.submit(False), color=None).classes("plain").props("flat")
