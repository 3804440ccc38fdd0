"""Adds `arroyo serve`, and the commands that speak to a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arroyo_core.plugin import hookimpl

if TYPE_CHECKING:
    from arroyo_core.cli import Commands


@hookimpl
def arroyo_add_command(commands: Commands) -> None:
    # Imported here: executors load plugins too, and need no commands.
    from arroyo_console.report import command as report

    report.add_command(commands)
