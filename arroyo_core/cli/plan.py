"""`arroyo plan`: the logical graph, its chains and its waves."""

from __future__ import annotations

import argparse
import os

from arroyo_core.cli.arguments import parallelism
from arroyo_core.cli.exits import OK
from arroyo_core.graph import plan_file
from arroyo_core.graph.views import VIEWS
from arroyo_core.plugin import installed_plugins


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "plan",
        help="show how a pipeline will run",
        description="Show the nodes of a pipeline with their columns, then chains, waves and the exchanges between. "
        "Values from the environment are shown as ${NAME}.",
    )
    parser.add_argument("file", metavar="FILE", help="a pipeline in YAML")
    parser.add_argument("--format", choices=tuple(VIEWS), default="text", help="default: text")
    parser.add_argument("--parallelism", type=parallelism, metavar="N", help="instead of the pipeline's own number")
    parser.set_defaults(command=plan)


def plan(args: argparse.Namespace) -> int:
    pipeline = plan_file(args.file, plugins=installed_plugins(), environment=os.environ, parallelism=args.parallelism)
    print(VIEWS[args.format](pipeline), end="")
    return OK
