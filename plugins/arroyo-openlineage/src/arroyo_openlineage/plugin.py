"""Adds `--openlineage` to `arroyo run`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arroyo_core.plugin import hookimpl

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from arroyo_core.cli import Commands, Observer
    from arroyo_core.pipeline import Plan


@hookimpl
def arroyo_add_command(commands: Commands) -> None:
    parser = commands.parser("run")
    parser.add_argument(
        "--openlineage",
        nargs="?",
        const="",
        metavar="URL",
        help="send OpenLineage events about the job there; without a URL, as OPENLINEAGE_URL or openlineage.yml say",
    )
    parser.add_argument(
        "--openlineage-namespace",
        metavar="NAME",
        help="the namespace of the job in these events (default: OPENLINEAGE_NAMESPACE, else arroyo)",
    )


@hookimpl
def arroyo_observe(args: argparse.Namespace, plans: Sequence[Plan]) -> Observer | None:
    if args.openlineage is None:
        return None
    # Imported here: its client takes long, and executors load plugins too.
    from arroyo_openlineage.lineage import Lineage

    return Lineage(plans, url=args.openlineage or None, namespace=args.openlineage_namespace)
