"""The commands of `arroyo`: the core's own, and those that plugins add through `arroyo_add_command`."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

from arroyo_core.cli.exits import MISTAKE
from arroyo_core.plugin import known_elsewhere

if TYPE_CHECKING:
    from arroyo_core.api import Origin

    #: What actions of a command are added to.
    Actions: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

#: From the arguments to an exit code.
Command: TypeAlias = Callable[[argparse.Namespace], int]


class CommandGroup(StrEnum):
    """The headings of `arroyo --help`, in their order. A plugin may have others, which come before the last."""

    PIPELINES = "write pipelines"
    JOBS = "run jobs"
    STATE = "look into state and output"
    EXTENSIONS = "plugins and user functions"
    TOOLS = "documentation and tools"
    OTHER = "other commands"


class CommandParser(argparse.ArgumentParser):
    """The parser of a command, or of an action below it: each of them takes `--debug`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # No default, or it would overwrite what was given before the command.
        self.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help="show tracebacks")

    def error(self, message: str) -> None:  # type: ignore[override]
        """Called by argparse for arguments that it does not understand; ends the process."""
        found = re.match(r"argument (ACTION|--format): invalid choice: '(.*?)' \(", message)
        if found is not None:
            kind = "commands" if found[1] == "ACTION" else "formats"
            owner = known_elsewhere(kind).get(f"{self.prog.split()[-1]}.{found[2]}")
            if owner is not None:
                what = found[2] if found[1] == "ACTION" else f"{found[1]} {found[2]}"
                self.exit(MISTAKE, f"{self.prog}: {_in_another(f'{self.prog} {what}', owner)}\n")
        super().error(message)


class Commands:
    """What a plugin adds its commands to."""

    def __init__(self, root: RootParser) -> None:
        #: The parser of `arroyo` itself, for commands that describe all others.
        self.root = root
        self._parsers: Actions = root.add_subparsers(
            metavar="COMMAND", dest="command_name", required=True, parser_class=CommandParser
        )
        self._owners: dict[str, Origin | None] = {}
        #: Whose commands are being added; None for the core's own.
        self._origin: Origin | None = None

    @property
    def names(self) -> Sequence[str]:
        return tuple(self._parsers.choices)

    def parser(self, name: str) -> argparse.ArgumentParser:
        """That of a command which is there: plugins may add options to those of `run`. Raises `KeyError` for others."""
        return self._parsers.choices[name]

    def actions(self, name: str) -> Actions:
        """The actions of a command which has some, such as `checkpoints`: a plugin adds its own to them."""
        (found,) = subparsers_of(self.parser(name))
        return found

    def are_complete_for(self, arguments: Sequence[str]) -> bool:
        """Whether what was added so far is all that these arguments need: the core's own commands and actions."""
        command, action, *_ = [*(word for word in arguments if not word.startswith("-")), "", ""]
        # What stands before the command is an option of `arroyo` itself, and may be a plugin's.
        if command not in self.names or arguments[0] not in (command, "--debug"):
            return False
        # These plan a pipeline, for which all plugins are loaded anyway; they may add options and views.
        if command in ("run", "plan"):
            return False
        return all(action in actions.choices for actions in subparsers_of(self.parser(command)))

    @contextmanager
    def registering(self, origin: Origin) -> Iterator[None]:
        """What is added within belongs to that distribution."""
        self._origin = origin
        try:
            yield
        finally:
            self._origin = None

    def add_parser(
        self,
        name: str,
        *,
        help: str,
        description: str | None = None,
        group: str = CommandGroup.OTHER,
        runs_pipelines: bool = True,
    ) -> argparse.ArgumentParser:
        """A parser for the arguments of a new command; its default `command` is a `Command`.

        `group` is the heading in `arroyo --help`: a `CommandGroup`, or another text. Raises `ValueError` for the name
        of a command of the core. A name that two plugins claim is nobody's: whoever uses it reads which two.

        With `ARROYO_UNTRUSTED` a command is refused that may plan or run a pipeline, or code that comes with one,
        unless it has untrusted mode. `runs_pipelines=False` says of a command that it never does; `add_planning`, or
        the default `runs_pipelines` of an action's parser, says of one of its actions that it does.
        """
        if name in self._owners:
            self._dispute(name)
            return CommandParser(prog=f"{self.root.prog} {name}", description=description)
        self._owners[name] = self._origin
        self.root.groups.setdefault(group, []).append(name)
        parser = self._parsers.add_parser(name, help=help, description=description)
        parser.set_defaults(runs_pipelines=runs_pipelines)
        return parser

    def _dispute(self, name: str) -> None:
        first = self._owners[name]
        if first is None:
            raise ValueError(f"the core has a command {name!r}")
        self.root.disputes.setdefault(name, [str(first)]).append(str(self._origin))
        # A dispute among three: the second has taken it out.
        self._parsers.choices.pop(name, None)
        actions = self._parsers._choices_actions
        actions[:] = [action for action in actions if action.dest != name]


class RootParser(argparse.ArgumentParser):
    """Shows commands in groups, and says which distribution has a command that is not installed."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        #: The names of commands by the heading of their group.
        self.groups: dict[str, list[str]] = {}
        #: Who claims a command, where several do.
        self.disputes: dict[str, list[str]] = {}
        #: Asked with the arguments, for plugins with options of `arroyo` itself: what to do instead of the command
        #: `command_name`, or None.
        self.redirections: list[Callable[[argparse.Namespace], Command | None]] = []

    def format_help(self) -> str:
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        shown = {action.dest: action for found in subparsers_of(self) for action in found._choices_actions}
        for title, names in self.grouped_names():
            formatter.start_section(title)
            formatter.add_arguments(shown[name] for name in names)
            formatter.end_section()
        formatter.start_section("options")
        formatter.add_arguments(self._get_optional_actions())
        formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help()

    def grouped_names(self) -> list[tuple[str, list[str]]]:
        """The names of the commands below each heading, in order."""
        known = set(self._names())
        grouped = [(title, [name for name in self.groups[title] if name in known]) for title in self.groups]
        return sorted([(title, names) for title, names in grouped if names], key=lambda group: _rank(group[0]))

    def error(self, message: str) -> None:  # type: ignore[override]
        """Called by argparse for arguments that it does not understand; ends the process."""
        found = re.match(r"argument COMMAND: invalid choice: '(.*?)' \(", message)
        if found is not None:
            self.exit(MISTAKE, f"{self.prog}: {missing_command(found[1], self._names(), self.disputes)}\n")
        option = re.match(r"unrecognized arguments: (--[\w-]+)", message)
        owner = known_elsewhere("options").get(option[1].removeprefix("--")) if option is not None else None
        if option is not None and owner is not None:
            self.exit(MISTAKE, f"{self.prog}: {_in_another(option[1], owner)}\n")
        super().error(message)

    def _names(self) -> Sequence[str]:
        return [name for found in subparsers_of(self) for name in found.choices]


def subparsers_of(parser: argparse.ArgumentParser) -> list[Actions]:
    """What a parser has below it; empty for a command without actions."""
    return [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]


def missing_command(name: str, known: Sequence[str], disputes: Mapping[str, Sequence[str]]) -> str:
    """What to say of a command that is not there."""
    if name in disputes:
        return (
            f"the command {name!r} is claimed by {' and by '.join(disputes[name])}: uninstall all but one, or block "
            "them with ARROYO_BLOCK_PLUGINS"
        )
    distribution = known_elsewhere("commands").get(name)
    if distribution is not None:
        return _in_another(f"the command {name!r}", distribution)
    elsewhere = [command for command in known_elsewhere("commands") if "." not in command]
    near = difflib.get_close_matches(name, [*known, *elsewhere], n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
    return f"there is no command {name!r}: {hint}"


def _in_another(what: str, distribution: str) -> str:
    return f"{what} is in {distribution}, which is not installed: pip install {distribution}"


def _rank(title: str) -> float:
    """Groups of plugins come before the last of our own."""
    titles: list[str] = list(CommandGroup)
    return titles.index(title) if title in titles else len(titles) - 1.5
