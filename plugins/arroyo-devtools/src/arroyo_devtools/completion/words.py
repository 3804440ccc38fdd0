"""What can be typed after each command, read off the parser: the words that shells complete."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What stands for a value that is not one of a few words."""

    FILE = "file"
    FOLDER = "folder"
    #: The names of operators, which depend on what is installed.
    OPERATOR = "operator"
    #: Nobody can guess it.
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A value that follows an option or a command; `choices` are all there are, if there are any."""

    kind: Kind
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    flags: tuple[str, ...]
    help: str
    #: None for an option that stands alone.
    value: Value | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command by its words: `()` for `arroyo` itself, `("udf", "build")`."""

    path: tuple[str, ...]
    help: str
    subcommands: tuple[str, ...]
    options: tuple[Option, ...]
    #: In their order; the last one may be repeated.
    values: tuple[Value, ...]

    @property
    def name(self) -> str:
        return " ".join(self.path)


_FILES = {"FILE", "SRC"}
_FOLDERS = {"DIR"}
#: Arguments whose name does not say what they are, by command.
_KINDS = {("docs", "name"): Kind.OPERATOR}


def read_commands(parser: argparse.ArgumentParser) -> list[Command]:
    """`arroyo` and all commands below it, parents first."""
    return list(_walk(parser, (), ""))


def _walk(parser: argparse.ArgumentParser, path: tuple[str, ...], text: str) -> Iterator[Command]:
    groups = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    yield Command(
        path=path,
        help=text,
        subcommands=tuple(name for group in groups for name in group.choices),
        options=tuple(_option(action, path) for action in parser._actions if _is_shown(action)),
        values=tuple(
            _value(action, path) for action in parser._actions if not action.option_strings and action not in groups
        ),
    )
    for group in groups:
        helps = {choice.dest: choice.help or "" for choice in group._choices_actions}
        for name, subparser in group.choices.items():
            yield from _walk(subparser, (*path, name), helps.get(name, ""))


def _is_shown(action: argparse.Action) -> bool:
    return bool(action.option_strings) and action.help != argparse.SUPPRESS


def _option(action: argparse.Action, path: tuple[str, ...]) -> Option:
    return Option(
        flags=tuple(action.option_strings),
        # As argparse shows it, which fills in defaults.
        help=(action.help or "") % vars(action),
        value=None if action.nargs == 0 else _value(action, path),
    )


def _value(action: argparse.Action, path: tuple[str, ...]) -> Value:
    choices = tuple(str(choice) for choice in action.choices or ())
    kind = _KINDS.get((" ".join(path), action.dest), Kind.OTHER)
    if action.metavar in _FILES:
        kind = Kind.FILE
    elif action.metavar in _FOLDERS:
        kind = Kind.FOLDER
    return Value(kind=kind, choices=choices)
