"""Adds `arroyo test`, files of tests, and the section `tests` of pipeline files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arroyo_core.plugin import hookimpl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arroyo_core.cli.commands import Commands
    from arroyo_core.pipeline.languages import Language
    from arroyo_core.pipeline.sections import Section


@hookimpl
def arroyo_add_command(commands: Commands) -> None:
    # Imported here: executors load plugins too, and need no commands.
    from arroyo_testing import command

    command.add_command(commands)


@hookimpl
def arroyo_language() -> Sequence[Language]:
    from arroyo_testing.cases.language import CaseFiles

    return [CaseFiles()]


@hookimpl
def arroyo_section() -> Sequence[Section]:
    from arroyo_testing.cases.language import CaseSection

    return [CaseSection()]
