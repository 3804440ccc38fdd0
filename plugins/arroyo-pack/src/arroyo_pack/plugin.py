"""Adds `arroyo pack`, and `--ship` to `arroyo run`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arroyo_core.plugin import hookimpl

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from arroyo_core.cli import Commands
    from arroyo_core.pipeline import Plan
    from arroyo_core.spark import Provider


@hookimpl
def arroyo_add_command(commands: Commands) -> None:
    from arroyo_pack.commands.options import add_pack_command, add_ship_options

    add_pack_command(commands)
    add_ship_options(commands.parser("run"))


@hookimpl
def arroyo_provision(args: argparse.Namespace, plans: Sequence[Plan]) -> Provider | None:
    from arroyo_pack.shipping import shipper_for

    return shipper_for(args, plans)
