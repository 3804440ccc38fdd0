"""The commands of `arroyo`: the core's own, and those that plugins add through `arroyo_add_command`."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from arroyo_core.cli.exits import MISTAKE
from arroyo_core.plugin import known_elsewhere

if TYPE_CHECKING:
    _SubParsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

#: From the arguments to an exit code.
Command: TypeAlias = Callable[[argparse.Namespace], int]


class Commands:
    """What a plugin adds its commands to."""

    def __init__(self, root: argparse.ArgumentParser) -> None:
        #: The parser of `arroyo` itself, for commands that describe all others.
        self.root = root
        self._parsers: _SubParsers = root.add_subparsers(title="commands", metavar="COMMAND", required=True)

    @property
    def names(self) -> Sequence[str]:
        return tuple(self._parsers.choices)

    def add_parser(self, name: str, *, help: str, description: str | None = None) -> argparse.ArgumentParser:
        """A parser for the arguments of a new command; its default `command` is a `Command`.

        Raises `ValueError` for a name that is taken.
        """
        if name in self._parsers.choices:
            raise ValueError(f"there is a command {name!r} already")
        parser = self._parsers.add_parser(name, help=help, description=description)
        # No default, or it would overwrite what was given before the command.
        parser.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help="show tracebacks")
        return parser


class RootParser(argparse.ArgumentParser):
    """Says which distribution has a command that is not installed."""

    def error(self, message: str) -> None:  # type: ignore[override]
        """Called by argparse for arguments that it does not understand; ends the process."""
        found = re.match(r"argument COMMAND: invalid choice: '(.*?)' \(", message)
        if found is not None:
            self.exit(MISTAKE, f"{self.prog}: {missing_command(found[1], self._names())}\n")
        super().error(message)

    def _names(self) -> Sequence[str]:
        groups = [action for action in self._actions if isinstance(action, argparse._SubParsersAction)]
        return [name for group in groups for name in group.choices]


def missing_command(name: str, known: Sequence[str]) -> str:
    """What to say of a command that is not there."""
    distribution = known_elsewhere("commands").get(name)
    if distribution is not None:
        return f"the command {name!r} is in {distribution}, which is not installed: pip install {distribution}"
    near = difflib.get_close_matches(name, [*known, *known_elsewhere("commands")], n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
    return f"there is no command {name!r}: {hint}"
