"""`arroyo sql`: a prompt for queries, and `arroyo sql compile`, which writes the plan of a script as YAML."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from arroyo_core.cli import Commands


def add_command(commands: Commands) -> None:
    from arroyo_core.cli import CommandGroup
    from arroyo_core.cli.commands import CommandParser
    from arroyo_core.cli.options import add_file, add_output, add_planning

    parser = commands.add_parser(
        "sql",
        group=CommandGroup.PIPELINES,
        help="ask queries at a prompt, or compile a script to YAML",
        description="Without an action: a prompt for SQL. Queries run in this process, without Spark, and their rows "
        "are shown as a table; what is created is kept until the end. What is piped in is run statement by statement.",
    )
    parser.set_defaults(command=ask)
    actions = parser.add_subparsers(metavar="ACTION", parser_class=CommandParser)
    compiling = actions.add_parser(
        "compile",
        help="write the plan of a script as YAML",
        description="Write the pipeline that a script is as YAML, to read, tune and run. It has the same nodes, so "
        "that it goes on with the state of the script. Values of parameters are put in, and ${NAME} of the "
        "environment stays.",
    )
    add_file(compiling, help="a pipeline in SQL")
    add_output(compiling)
    add_planning(compiling)
    compiling.set_defaults(command=compile_script)


def ask(args: argparse.Namespace) -> int:
    """The prompt on a terminal; else the statements of stdin, one after the other."""
    from arroyo_sql.prompt.loop import run_prompt, run_statements

    if sys.stdin.isatty():
        return run_prompt()
    return run_statements(sys.stdin.read(), is_debug=args.debug)


def compile_script(args: argparse.Namespace) -> int:
    from arroyo_core.cli.exits import OK
    from arroyo_core.cli.options import planning, write_output
    from arroyo_core.pipeline import plan_file
    from arroyo_sql.render import to_yaml

    pipeline = plan_file(args.file, **planning(args))
    heading = f"The plan of {args.file}, as `arroyo sql compile` writes it."
    write_output(to_yaml(pipeline.written.root, heading=heading), args.output)
    return OK
