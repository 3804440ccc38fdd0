"""`arroyo graph`: a picture of a pipeline, and of what an epoch of it came to."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from arroyo_core.api.visible import visible
from arroyo_core.cli.arguments import checkpoint
from arroyo_core.cli.commands import CommandGroup, Commands
from arroyo_core.cli.exits import OK
from arroyo_core.cli.options import add_file, add_output, add_planning, add_untrusted, planning, write_output
from arroyo_core.cli.plan import add_view
from arroyo_core.cli.planning_time import planning_time
from arroyo_core.errors import SetupError
from arroyo_core.pipeline import PlannedPipeline, plan_file
from arroyo_core.state.fork import find_checkpoint
from arroyo_devtools.drawing.annotations import NOTHING, Annotations
from arroyo_devtools.drawing.dot import render_dot
from arroyo_devtools.drawing.epoch_figures import annotate_checkpoint, last_with_rows, unknown_nodes
from arroyo_devtools.drawing.mermaid import render_mermaid
from arroyo_devtools.drawing.outline import render_outline
from arroyo_devtools.drawing.png import png_of
from arroyo_devtools.drawing.svg import render_svg

#: What each ending of a file stands for.
DRAWINGS: Mapping[str, Callable[[PlannedPipeline, Annotations], bytes]] = {
    ".svg": lambda pipeline, annotations: render_svg(pipeline, annotations).encode(),
    ".png": lambda pipeline, annotations: png_of(render_svg(pipeline, annotations)),
    ".mmd": lambda pipeline, annotations: render_mermaid(pipeline, annotations).encode(),
    ".txt": lambda pipeline, annotations: render_outline(pipeline, annotations).encode(),
}


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "graph",
        group=CommandGroup.PIPELINES,
        help="draw a pipeline",
        description="Draw a pipeline: its nodes, the chains that run in one task, and what goes between them. "
        "Without -o as text. Values from the environment are shown as ${NAME}.",
    )
    add_file(parser)
    add_output(
        parser, help=f"where to, by its ending: {', '.join(DRAWINGS)} (.png needs the extra arroyo-devtools[png])"
    )
    parser.add_argument(
        "--checkpoint",
        type=checkpoint,
        metavar="URL[#JOB[@EPOCH]]",
        help="also rows, state and busy share of the last epoch with rows there, or of the one that is named",
    )
    add_planning(parser)
    add_untrusted(parser)
    parser.set_defaults(command=graph)


def add_views(commands: Commands) -> None:
    """Add `arroyo plan --format mermaid` and `dot`."""
    add_view(commands, "mermaid", render_mermaid)
    add_view(commands, "dot", render_dot)


def graph(args: argparse.Namespace) -> int:
    draw = _drawing(args.output)
    with planning_time(args.file):
        pipeline = plan_file(args.file, **planning(args))
    annotations = NOTHING
    if args.checkpoint is not None:
        found = find_checkpoint(args.checkpoint, job_id=pipeline.plan.job_id, is_committed_only=False)
        if args.checkpoint.epoch is None:
            found = last_with_rows(found)
        annotations = annotate_checkpoint(found, pipeline.plan)
        others = unknown_nodes(found, pipeline.plan)
        if others:
            names = visible(", ".join(others))
            print(f"not drawn, because the pipeline does not have them any more: {names}", file=sys.stderr)
    write_output(draw(pipeline, annotations), args.output)
    return OK


def _drawing(output: str | None) -> Callable[[PlannedPipeline, Annotations], bytes]:
    kind = ".txt" if output is None else Path(output).suffix.lower()
    if kind not in DRAWINGS:
        raise SetupError(f"cannot tell from its name how to draw {output}: it may end in {', '.join(DRAWINGS)}")
    return DRAWINGS[kind]
