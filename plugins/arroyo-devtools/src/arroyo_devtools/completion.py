"""Completion scripts for shells: shtab writes them, from the parser of all commands.

They know everything but the names of operators: for those they ask `arroyo completion --operators`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import shtab

# Not shtab's own functions for bash, which take a name with a blank for two.
_BASH = """\
_arroyo_files() { compgen -f -- "$1"; }
_arroyo_dirs() { compgen -d -- "$1"; }"""
_FILES = {**shtab.FILE, "bash": "_arroyo_files", "preamble": {"bash": _BASH}}
_FOLDERS = {**shtab.DIRECTORY, "bash": "_arroyo_dirs", "preamble": {"bash": _BASH}}
_OPERATORS = shtab.cmd("arroyo completion --operators 2>/dev/null")
#: What an argument is, by its metavar, and by command where that does not say it.
_BY_METAVAR = {"FILE": _FILES, "SRC": _FILES, "DIR": _FOLDERS}
_BY_COMMAND = {("arroyo docs", "name"): _OPERATORS}

# Bash makes three words of --option=value, of which shtab knows two.
_WITHOUT_EQUALS = """
_arroyo() {
    local word before=() after=() i
    for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do
        word="${COMP_WORDS[i]}"
        if [[ $word == "=" && $i != "$COMP_CWORD" ]]; then continue; fi
        if [[ $i == "$COMP_CWORD" ]]; then word="${word#=}"; fi
        if ((i <= COMP_CWORD)); then before+=("$word"); else after+=("$word"); fi
    done
    local COMP_WORDS=("${before[@]}" "${after[@]}") COMP_CWORD=$((${#before[@]} - 1))
    _shtab_arroyo "$@"
}
complete -o bashdefault -F _arroyo arroyo
"""


def completion_script(root: argparse.ArgumentParser, shell: str) -> str:
    """The script for bash, zsh or fish, of all commands of `root`, which is of no other use afterwards."""
    for parser in _parsers(root):
        for action in parser._actions:
            _prepare(action, parser.prog, shell)
    script: str = shtab.complete(root, shell)
    if shell == "zsh":
        # What shtab writes for one or more is exactly one to zsh.
        return script.replace('"(*):', '"*:')
    return script + _WITHOUT_EQUALS if shell == "bash" else script


def _prepare(action: argparse.Action, command: str, shell: str) -> None:
    """Say in shtab's way what the values of an argument are, and what its commands do."""
    values: Any = _BY_COMMAND.get((command, action.dest)) or _BY_METAVAR.get(str(action.metavar))
    if values is not None:
        action.complete = values  # type: ignore[attr-defined]
    if isinstance(action, argparse._SubParsersAction):
        for choice in action._choices_actions:
            # Shorter than the description, which stands in a list here.
            action.choices[choice.dest].description = choice.help
    elif shell == "zsh" and action.nargs != 0:
        # To zsh, an option without this takes no --option=value.
        action.option_strings = [
            f"{option}=" if option.startswith("--") else option for option in action.option_strings
        ]


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _parsers(command)
