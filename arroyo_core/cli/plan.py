"""`arroyo plan`: the logical graph, its chains and its waves, and what becomes of a job's state."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from arroyo_core.cli.arguments import checkpoint
from arroyo_core.cli.commands import CommandGroup, Commands
from arroyo_core.cli.exits import MISTAKE, OK
from arroyo_core.cli.options import (
    JSON,
    TEXT,
    add_file,
    add_format,
    add_output,
    add_planning,
    add_untrusted,
    planning,
    write_output,
)
from arroyo_core.cli.plan_changes import comparison_json, comparison_text, needs_consent
from arroyo_core.cli.planning_time import planning_time
from arroyo_core.errors import SetupError
from arroyo_core.pipeline import PlannedPipeline, plan_file
from arroyo_core.pipeline.views import render_json, render_text
from arroyo_core.plugin import installed_plugins
from arroyo_core.runtime.declarations import declare_operators
from arroyo_core.runtime.plan_changes import compare_plan
from arroyo_core.runtime.udf_changes import changed_udfs, compare_udfs
from arroyo_core.state.fork import find_checkpoint

#: From a plan to what is shown of it.
View: TypeAlias = Callable[[PlannedPipeline], str]


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "plan",
        group=CommandGroup.PIPELINES,
        help="show how a pipeline will run",
        description="Show the nodes of a pipeline with their columns, then chains, waves and the exchanges between, "
        "and the guarantee that its output has. Values from the environment are shown as ${NAME}.",
    )
    add_file(parser)
    views: dict[str, View] = {TEXT: render_text, JSON: render_json}
    add_format(parser, views)
    add_output(parser)
    parser.add_argument(
        "--against",
        type=checkpoint,
        metavar="URL[#JOB[@EPOCH]]",
        help="also compare the pipeline with a checkpoint; the exit code is 2 if a start would need "
        "--allow-drop, --allow-change or --accept-udf-change",
    )
    add_planning(parser)
    add_untrusted(parser)
    parser.set_defaults(command=plan, views=views)


def add_view(commands: Commands, name: str, view: View) -> None:
    """Let plans be shown with `--format NAME` too; for plugins."""
    commands.parser("plan").get_default("views")[name] = view


def plan(args: argparse.Namespace) -> int:
    if args.against is not None and args.format not in (TEXT, JSON):
        raise SetupError(f"--against has no --format {args.format}: choose text or json")
    with planning_time(args.file):
        pipeline = plan_file(args.file, **planning(args))
    if args.against is None:
        write_output(args.views[args.format](pipeline), args.output)
        return OK
    found = find_checkpoint(args.against, job_id=pipeline.plan.job_id, is_committed_only=False)
    operators = declare_operators(pipeline.plan, installed_plugins())
    compared = compare_plan(operators, found.checkpoint, is_committed=found.is_committed)
    udfs = compare_udfs(pipeline.plan, found.checkpoint)
    # A reason may name columns, and a column's name may come from the environment.
    changes = [replace(change, reason=pipeline.redact(change.reason)) for change in compared]
    if args.format == JSON:
        document = json.loads(render_json(pipeline))
        text = json.dumps({**document, "comparison": comparison_json(found.origin, changes, udfs)}, indent=2) + "\n"
    else:
        text = f"{args.views[args.format](pipeline)}\n{comparison_text(found.origin, changes, udfs)}"
    write_output(text, args.output)
    return MISTAKE if needs_consent(changes) or changed_udfs(udfs) else OK
