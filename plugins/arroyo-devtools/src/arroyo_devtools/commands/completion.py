"""`arroyo completion`: scripts that let a shell complete commands, options, files and operators."""

from __future__ import annotations

import argparse

from arroyo_core.cli.commands import CommandGroup, Commands
from arroyo_core.cli.exits import OK
from arroyo_core.errors import SetupError
from arroyo_core.plugin import installed_plugins

SHELLS = ("bash", "zsh", "fish")


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "completion",
        group=CommandGroup.TOOLS,
        runs_pipelines=False,
        help="print a completion script for a shell",
        description="Print a script that completes commands, options, files and the names of operators. "
        'For bash, put this into ~/.bashrc: eval "$(arroyo completion bash)"',
    )
    parser.add_argument("shell", nargs="?", choices=SHELLS, help="the shell to print a script for")
    # For the scripts.
    parser.add_argument("--operators", action="store_true", help=argparse.SUPPRESS)
    parser.set_defaults(command=lambda args: _complete(args, commands.root))


def _complete(args: argparse.Namespace, root: argparse.ArgumentParser) -> int:
    if args.operators:
        print("\n".join(sorted(installed_plugins().registry.constructors)))
        return OK
    if args.shell is None:
        raise SetupError(f"name the shell: {', '.join(SHELLS)}")
    # Imported here, because no other command needs shtab.
    from arroyo_devtools.completion import completion_script

    print(completion_script(root, args.shell))
    return OK
