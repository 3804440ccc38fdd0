"""The checkpoints of a job: how long each took, what it wrote, and what it took over from those before."""

from __future__ import annotations

from collections.abc import Sequence

from nicegui import ui

from arroyo_console.errors import ConsoleError
from arroyo_console.pages.frame import TICK_S, html, refused, section
from arroyo_console.pages.part import Part
from arroyo_console.pages.words import UNKNOWN, Safe, empty, loading, seconds, size, table, tag, when
from arroyo_console.pictures.charts import chart
from arroyo_console.values import Checkpoint

_SHOWN = 100
_HEADS = ("epoch", "is", "finished", "epoch took", "writing took", "written", "taken over", "files", "generation")


class CheckpointsPart(Part):
    TICK_S = TICK_S * 2

    async def build(self) -> None:
        with section("Size"):
            self._charts = html("").classes("live")
        with section("What each operator wrote", note="Of one checkpoint."):
            self._epoch = (
                ui.select([], label="Epoch", on_change=self._show_one).props("outlined dense").style("min-width: 10rem")
            )
            self._one = html("")
        with section("Checkpoints"):
            self._all = html(loading()).classes("live")
        try:
            await self.refresh()
        except ConsoleError as error:
            self._all.set_content(empty(refused(error)))

    async def refresh(self) -> None:
        found = await self.site.live.get(self.site.console.checkpoints, self.job_id, limit=_SHOWN)
        self._all.set_content(_table(found))
        self._charts.set_content(_charts(found[::-1]))
        epochs = [each.epoch for each in found if not each.error]
        if epochs and epochs != self._epoch.options:
            chosen = self._epoch.value if self._epoch.value in epochs else epochs[0]
            self._epoch.set_options(epochs, value=chosen)

    async def _show_one(self) -> None:
        if self._epoch.value is None:
            return
        try:
            one = await self.site.live.get(self.site.console.checkpoint, self.job_id, self._epoch.value, fresh_s=30.0)
        except ConsoleError as error:
            self._one.set_content(tag("p", refused(error), role="alert"))
            return
        self._one.set_content(_operators(one))


def _table(checkpoints: Sequence[Checkpoint]) -> Safe:
    if not checkpoints:
        return empty(
            "There is no checkpoint yet.",
            "The first comes at the end of the first epoch, if the pipeline has a checkpoint url.",
        )
    lines = [_line(each) for each in checkpoints]
    return table("checkpoints, newest first", _HEADS, lines, right=(0, 3, 4, 5, 6, 7, 8))


def _line(found: Checkpoint) -> list[object]:
    if found.error:
        damaged = tag("span", "damaged", class_="badge bad")
        return [str(found.epoch), damaged, found.error, *[""] * 6]
    words = "last" if found.is_final else "committed" if found.is_committed else "not committed"
    return [
        str(found.epoch),
        tag("span", words, class_=f"badge {'ok' if found.is_committed else 'warn'}"),
        when(found.finished_us),
        seconds(found.duration_s),
        seconds(found.checkpoint_s),
        size(found.bytes_written),
        size(found.bytes_reused),
        f"{found.files:,}",
        str(found.generation),
    ]


def _charts(checkpoints: Sequence[Checkpoint]) -> Safe:
    whole = [each for each in checkpoints if not each.error]
    if not whole:
        return tag("p", "There is nothing to draw yet.", class_="muted")
    ends = (f"epoch {whole[0].epoch}", f"epoch {whole[-1].epoch}")

    def size_of(value: float) -> str:
        return size(int(value))

    charts = [
        chart([each.bytes_written for each in whole], title="written", show=size_of, ends=ends, is_bars=True),
        chart([each.bytes_reused for each in whole], title="taken over", show=size_of, ends=ends, is_bars=True),
        chart([each.checkpoint_s for each in whole], title="writing took", show=seconds, ends=ends, is_bars=True),
    ]
    return tag("div", Safe("".join(charts)), class_="charts")


def _operators(checkpoint: Checkpoint) -> Safe:
    if not checkpoint.operators:
        return tag("p", "No operator has state in it.", class_="muted")
    lines = [
        [
            each.node,
            str(each.parallelism),
            size(each.bytes_written),
            size(each.bytes_reused),
            f"{each.files_written:,}",
            f"{each.files_reused:,}",
            seconds(each.duration_s),
            when(each.watermark_us) if each.watermark_us is not None else UNKNOWN,
            ", ".join(each.tables),
        ]
        for each in checkpoint.operators
    ]
    heads = (
        "node",
        "subtasks",
        "written",
        "taken over",
        "files written",
        "files taken over",
        "took",
        "watermark",
        "tables",
    )
    return table(f"what operators wrote in epoch {checkpoint.epoch}", heads, lines, right=range(1, 7))
