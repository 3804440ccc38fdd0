"""Adds `arroyo serve`, what the server runs in processes of their own, and the commands that speak to a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arroyo_core.plugin import hookimpl

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from arroyo_core.cli import Commands, Observer
    from arroyo_core.pipeline import Plan


@hookimpl
def arroyo_add_command(commands: Commands) -> None:
    # Imported here: executors load plugins too, and need no commands.
    from arroyo_console.cli import remote, serve
    from arroyo_console.planning import inspection, preview
    from arroyo_console.report import command as report

    serve.add_command(commands)
    remote.add_commands(commands)
    inspection.add_command(commands)
    preview.add_command(commands)
    report.add_command(commands)
    commands.parser("run").add_argument(
        "--journal",
        metavar="DIR",
        help="write the graph, a line for each epoch, and errors with their tracebacks there, for the console",
    )


@hookimpl
def arroyo_observe(args: argparse.Namespace, plans: Sequence[Plan]) -> Observer | None:
    folder = getattr(args, "journal", None)
    if folder is None:
        return None
    from pathlib import Path

    from arroyo_console.journal import Journal
    from arroyo_core.errors import SetupError

    if len(plans) != 1:
        raise SetupError("--journal is about one job: run one pipeline with it")
    return Journal(Path(folder), plans[0])
