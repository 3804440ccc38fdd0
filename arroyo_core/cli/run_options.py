"""The options of `arroyo run`."""

from __future__ import annotations

import argparse

from arroyo_core.cli.arguments import checkpoint, epoch, restarts
from arroyo_core.cli.commands import Command, CommandGroup, Commands
from arroyo_core.cli.options import add_files, add_format, add_planning, add_spark
from arroyo_core.runtime.job import MAX_RESTARTS
from arroyo_core.runtime.start import StartError, StartOptions


def add_command(commands: Commands, command: Command) -> None:
    parser = commands.add_parser(
        "run",
        group=CommandGroup.JOBS,
        help="run pipelines on Spark",
        description="Run pipelines on Spark, all in one session, until their data ends, or Ctrl-C.",
    )
    add_files(parser, help="a pipeline in YAML or SQL, or a folder of them; several run beside each other")
    add_planning(parser)
    add_spark(parser)
    parser.add_argument(
        "--execution",
        choices=("auto", "jobs", "live"),
        help="how epochs run: each as a Spark job, in workers that live on, or live where Spark can (default: what the "
        "pipeline says, else jobs)",
    )
    parser.add_argument(
        "--in-process",
        action="store_true",
        help="without Spark, one task after the other: for small data and tests",
    )
    _add_start(parser)
    parser.add_argument(
        "--max-restarts",
        type=restarts,
        default=MAX_RESTARTS,
        metavar="N",
        help="how often the job restarts by itself after a failure that may pass (default: %(default)s)",
    )
    _add_watching(parser)
    parser.set_defaults(command=command)


def _add_start(parser: argparse.ArgumentParser) -> None:
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


def _add_watching(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("watching", "See docs/watching.md.")
    group.add_argument(
        "--progress",
        choices=("live", "plain", "brief", "none"),
        help="a view that is redrawn in place, a line for each epoch, a line every ten seconds, or neither; on stderr "
        "(default: live on a terminal, where a plugin has such a view, else plain; brief where stderr is not a "
        "terminal; none with --format json)",
    )
    group.add_argument(
        "--log-format",
        choices=("text", "json"),
        default="text",
        help="how lines on stderr are written: with their time, or as JSON objects (default: %(default)s)",
    )
    add_format(
        parser,
        help="json: an object for each epoch and one at the end on stdout, and what sinks print goes to stderr",
        formerly=["--output"],
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
