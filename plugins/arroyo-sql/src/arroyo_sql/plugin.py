"""Adds the language of `.sql` files, and the command `arroyo sql`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arroyo_core.plugin import hookimpl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arroyo_core.cli import Commands
    from arroyo_core.pipeline import Language
    from arroyo_core.pipeline.expansions import Expansion


@hookimpl
def arroyo_add_command(commands: Commands) -> None:
    # Imported here: executors load plugins too, and need no commands.
    from arroyo_sql.commands import add_command

    add_command(commands)


@hookimpl
def arroyo_expansion() -> Sequence[Expansion]:
    from arroyo_sql.node_queries import NodeQuery

    return [NodeQuery()]


@hookimpl
def arroyo_language() -> Sequence[Language]:
    from arroyo_sql.language import Sql

    return [Sql()]
