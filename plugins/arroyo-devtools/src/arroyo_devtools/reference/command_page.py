"""The page of the commands, from their parsers."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from arroyo_core.cli.commands import RootParser
from arroyo_devtools.reference.markdown import fenced, table

_EXIT_CODES = (
    ("0", "All is well."),
    ("1", "Something failed."),
    ("2", "There is something that you can fix: a pipeline, an argument, a missing plugin."),
)


def command_page(root: RootParser) -> str:
    parts = [f"# {root.prog}", root.description or "", _purposes(root), *_arguments(root)]
    parts += ["Exit codes, where a command does not say otherwise:", table(("Code", "Meaning"), _EXIT_CODES)]
    for command in _commands(root):
        parts += _section(command, "##")
    return "\n\n".join(part for part in parts if part)


def _purposes(root: RootParser) -> str:
    """Which commands there are for what, with links to their sections."""
    rows = [
        (title, ", ".join(f"[{name}](#{root.prog}-{name})" for name in names)) for title, names in root.grouped_names()
    ]
    return table(("Purpose", "Commands"), rows)


def _section(parser: argparse.ArgumentParser, heading: str) -> Iterator[str]:
    yield f"{heading} {parser.prog}"
    yield _text(parser, parser.description)
    commands = list(_commands(parser))
    if not commands:
        yield fenced(_usage(parser))
    yield from _arguments(parser)
    for command in commands:
        yield from _section(command, f"{heading}#")


def _usage(parser: argparse.ArgumentParser) -> str:
    positionals = [_positional(action) for action in parser._actions if not action.option_strings]
    required = [_option(action) for action in parser._actions if action.option_strings and action.required]
    optional = ["[OPTIONS]"] if any(_is_shown(action) and not action.required for action in _options(parser)) else []
    return " ".join([parser.prog, *required, *optional, *positionals])


def _arguments(parser: argparse.ArgumentParser) -> Iterator[str]:
    rows = [
        (f"`{_positional(action) if not action.option_strings else _option(action)}`", _help(parser, action))
        for action in parser._actions
        if _is_shown(action) and not isinstance(action, argparse._SubParsersAction)
    ]
    if rows:
        yield table(("Argument", "Meaning"), rows)


def _commands(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            # Aliases share a parser.
            yield from dict.fromkeys(action.choices.values())


def _options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [action for action in parser._actions if action.option_strings]


def _is_shown(action: argparse.Action) -> bool:
    is_everywhere = "--help" in action.option_strings or (
        "--debug" in action.option_strings and action.default == argparse.SUPPRESS
    )
    return action.help != argparse.SUPPRESS and not is_everywhere


def _positional(action: argparse.Action) -> str:
    name = _value(action)
    forms = {"?": f"[{name}]", "*": f"[{name} ...]", "+": f"{name} [{name} ...]"}
    return forms.get(str(action.nargs), name)


def _option(action: argparse.Action) -> str:
    names = ", ".join(action.option_strings)
    if action.nargs == 0:
        return names
    value = _value(action)
    return f"{names} {f'[{value}]' if action.nargs == '?' else value}"


def _value(action: argparse.Action) -> str:
    if isinstance(action.metavar, tuple):
        return " ".join(action.metavar)
    if action.metavar is not None:
        return action.metavar
    if action.choices is not None:
        return "{" + ",".join(map(str, action.choices)) + "}"
    return action.dest.upper()


def _help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    return (action.help or "") % {**vars(action), "prog": parser.prog}


def _text(parser: argparse.ArgumentParser, text: str | None) -> str:
    return (text or "") % {"prog": parser.prog}
