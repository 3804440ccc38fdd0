"""Adds the commands of arroyo-jobs, and what it adds to `arroyo run`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arroyo_core.plugin import hookimpl

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from arroyo_core.cli import Commands, Observer
    from arroyo_core.pipeline import Plan


@hookimpl
def arroyo_add_command(commands: Commands) -> None:
    # Imported here: executors load plugins too, and need no commands.
    from arroyo_jobs import listing, metrics_options
    from arroyo_jobs.checkpoints import actions

    listing.add_commands(commands)
    actions.add_actions(commands)
    metrics_options.add_options(commands.parser("run"))


@hookimpl
def arroyo_run_several() -> Callable[[argparse.Namespace], int]:
    from arroyo_jobs.several import run_several

    return run_several


@hookimpl
def arroyo_observe(args: argparse.Namespace, plans: Sequence[Plan]) -> Observer | None:
    if args.metrics_port is None:
        return None
    from arroyo_jobs.metrics_port import MetricsPort

    return MetricsPort(args, plans)
