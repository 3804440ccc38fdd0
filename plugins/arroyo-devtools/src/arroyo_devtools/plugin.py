"""Adds the commands of arroyo-devtools, and the live view of `arroyo run`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arroyo_core.plugin import hookimpl

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TextIO

    from arroyo_core.cli import Commands, Progress
    from arroyo_core.pipeline import Plan, PlannedPipeline


@hookimpl
def arroyo_add_command(commands: Commands) -> None:
    # Imported here: executors load plugins too, and need no commands.
    from arroyo_devtools import doctor
    from arroyo_devtools.commands import completion, docs, fmt, graph, lint, new, proto, schema, udf

    for module in (lint, fmt, graph, docs, schema, doctor, completion, new, proto):
        module.add_command(commands)
    udf.add_actions(commands)
    graph.add_views(commands)


@hookimpl
def arroyo_draw(pipeline: PlannedPipeline, heading: str, notes: Mapping[str, Sequence[str]]) -> str:
    from arroyo_devtools.drawing.annotations import Annotations
    from arroyo_devtools.drawing.svg import render_svg

    return render_svg(pipeline, Annotations(heading=heading, lines={name: tuple(each) for name, each in notes.items()}))


@hookimpl
def arroyo_progress(plan: Plan, out: TextIO) -> Progress:
    from arroyo_devtools.live.progress import LiveProgress

    return LiveProgress(plan, out)
