"""The options of `arroyo pack`, and those of `arroyo run` that are about shipping."""

from __future__ import annotations

import argparse

from arroyo_core.cli.commands import CommandGroup, Commands
from arroyo_core.cli.options import add_format, add_planning

KINDS = ("wheels", "env")


def add_ship_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("executors without arroyo", "See docs/ship-to-executors.md.")
    group.add_argument(
        "--ship",
        choices=("none", *KINDS),
        default="none",
        help="send executors what they lack: arroyo, plugins and other pure Python packages; or a whole environment of "
        "Python; or nothing (default: %(default)s)",
    )
    group.add_argument(
        "--ship-with",
        action="append",
        default=[],
        metavar="NAME",
        help="another distribution that is to be sent, with what it requires; may be repeated",
    )
    group.add_argument(
        "--ship-python",
        metavar="PATH",
        help="with --ship env: where executors have the driver's minor version of Python (default: where it has it)",
    )
    group.add_argument(
        "--ship-file", metavar="FILE", help="send this archive, of `arroyo pack` or conda-pack, instead of making one"
    )


def add_pack_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "pack",
        group=CommandGroup.JOBS,
        help="pack arroyo and plugins for executors that lack them",
        description="Pack what pipelines need where their tasks run; without a FILE, all plugins that are installed.",
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="a pipeline in YAML")
    parser.add_argument(
        "--as",
        dest="kind",
        choices=KINDS,
        default=KINDS[0],
        help="pure Python packages in a zip, or a whole environment in a .tar.gz (default: %(default)s)",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="copy the archive there; it stays in the cache too")
    parser.add_argument(
        "--with",
        dest="more",
        action="append",
        default=[],
        metavar="NAME",
        help="another distribution, with what it requires; may be repeated",
    )
    parser.add_argument(
        "--python",
        metavar="PATH",
        help="with --as env: where executors have the same minor version of Python (default: where it is here)",
    )
    add_planning(parser)
    add_format(parser)
    parser.set_defaults(command=_pack)


def _pack(args: argparse.Namespace) -> int:
    from arroyo_pack.commands.pack import run

    return run(args)
