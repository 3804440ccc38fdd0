"""Adds `arroyo iceberg snapshots|expire|orphans`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from arroyo_core.api.units import DURATION_UNITS
from arroyo_core.cli.arguments import duration_us
from arroyo_core.cli.commands import CommandGroup, Commands
from arroyo_core.cli.options import add_format, add_planning
from arroyo_iceberg.commands import maintenance

#: Snapshots that are kept by default, as other tools do; and how old a file must be to be nobody's.
KEPT_US = 5 * DURATION_UNITS["d"]
ORPHAN_US = 3 * DURATION_UNITS["d"]

if TYPE_CHECKING:
    _Actions: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "iceberg", group=CommandGroup.STATE, help="look at the Iceberg tables of a pipeline, and clear them up"
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    _add(actions, "snapshots", "list the snapshots of a table", maintenance.snapshots)
    expire = _add(actions, "expire", "remove old snapshots from the table's metadata", maintenance.expire)
    expire.add_argument(
        "--older-than",
        type=duration_us,
        default=KEPT_US,
        metavar="TIME",
        help="remove those that are older, but no branch's or tag's newest one (default: 5d)",
    )
    expire.add_argument("--yes", action="store_true", help="do it; without this flag it is only said")
    orphans = _add(actions, "orphans", "find files that no snapshot refers to", maintenance.orphans)
    orphans.add_argument(
        "--older-than",
        type=duration_us,
        default=ORPHAN_US,
        metavar="TIME",
        help="leave younger files alone: a job or another writer may be about to commit them (default: 3d)",
    )
    orphans.add_argument(
        "--place",
        action="append",
        default=[],
        metavar="URL",
        help="a folder that is the table's alone, where its properties place files there; may be repeated",
    )
    orphans.add_argument("--yes", action="store_true", help="delete them; without this flag they are only listed")


def _add(
    actions: _Actions, name: str, text: str, command: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    parser.set_defaults(command=command)
    parser.add_argument("pipeline", metavar="PIPELINE", help="the pipeline file")
    parser.add_argument("node", metavar="NODE", help="an iceberg.sink or iceberg.source of the pipeline")
    add_format(parser)
    add_planning(parser)
    return parser
