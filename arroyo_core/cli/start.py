"""The flags of `arroyo run` that say how the job starts."""

from __future__ import annotations

import argparse

from arroyo_core.cli.arguments import checkpoint, epoch
from arroyo_core.runtime.start import StartError, StartOptions


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags that `start_options` reads."""
    group = parser.add_argument_group(
        "start", "A job goes on after its latest checkpoint, if it has one, unless one of these says otherwise."
    )
    ways = group.add_mutually_exclusive_group()
    ways.add_argument(
        "--from-epoch", type=epoch, metavar="N", help="go back to epoch N; what sinks committed after it stays"
    )
    ways.add_argument("--fresh", action="store_true", help="begin with empty state; refused if there are checkpoints")
    ways.add_argument(
        "--fork-from",
        type=checkpoint,
        metavar="URL[#JOB[@EPOCH]]",
        help="begin with a copy of another job's state; JOB is by default this pipeline's name, EPOCH the newest",
    )
    group.add_argument("--force", action="store_true", help="with --fresh: also if there are checkpoints")
    group.add_argument(
        "--allow-drop",
        action="store_true",
        help="leave state behind that the pipeline has no place for; `arroyo plan --against` shows it",
    )
    group.add_argument(
        "--accept-udf-change",
        action="append",
        default=[],
        metavar="NAME",
        help="go on though the user functions of NAME (an alias, bundle or distribution) changed; may be repeated",
    )
    group.add_argument(
        "--allow-change",
        action="append",
        default=[],
        metavar="NODE",
        help="let NODE go on with its state as it is, though settings changed that the state depends on; may be "
        "repeated; `arroyo plan --against` shows them",
    )


def start_options(args: argparse.Namespace) -> StartOptions:
    """What the flags come to; raises `StartError` for flags that do not go together."""
    if args.force and not args.fresh:
        raise StartError("--force only goes with --fresh")
    return StartOptions(
        from_epoch=args.from_epoch,
        is_fresh=args.fresh,
        is_forced=args.force,
        fork_from=args.fork_from,
        allow_drop=args.allow_drop,
        accept_udf_changes=frozenset(args.accept_udf_change),
        allow_changes=frozenset(args.allow_change),
    )
