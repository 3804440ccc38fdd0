"""`arroyo stop`: asks a running job to stop, from anywhere that reaches its checkpoints."""

from __future__ import annotations

import argparse
import json

from arroyo_core.cli.commands import CommandGroup, Commands
from arroyo_core.cli.exits import OK
from arroyo_core.cli.options import JSON, add_format
from arroyo_core.cli.state_commands import add_job_arguments, open_backend
from arroyo_core.runtime.events import StopMode
from arroyo_core.runtime.stop import StopFile
from arroyo_core.state.inspection import find_started_jobs, finished_epoch

_MODES = {
    StopMode.CHECKPOINT: "end the epoch and commit it (default)",
    StopMode.GRACEFUL: "the same, and tell sources and operators",
    StopMode.IMMEDIATE: "give the running epoch up",
}


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "stop",
        group=CommandGroup.JOBS,
        help="ask a running job to stop",
        description="Ask the driver of a job to stop. Started again, the job goes on where it was.",
    )
    add_job_arguments(parser)
    parser.add_argument(
        "--mode",
        choices=[mode.value for mode in StopMode],
        default=StopMode.CHECKPOINT.value,
        help="; ".join(f"{mode}: {text}" for mode, text in _MODES.items()),
    )
    add_format(parser)
    parser.set_defaults(command=_stop)


def _stop(args: argparse.Namespace) -> int:
    # A job may have to be stopped before it has come to its first checkpoint.
    backend = open_backend(args, find_started_jobs)
    facts = backend.read_facts()
    finished = finished_epoch(backend, facts)
    generation = max(facts.generations)
    if finished is None:
        StopFile.at(backend.storage.url, backend.job_id, generation).write(StopMode(args.mode))
    if args.format == JSON:
        answer = {"job": backend.job_id, "is_asked": finished is None, "finished_epoch": finished}
        print(json.dumps({**answer, "generation": generation, "mode": args.mode}, indent=2))
    elif finished is not None:
        print(f"{backend.job_id} has finished, at epoch {finished}: there is nothing to stop")
    else:
        print(f"{backend.job_id}: asked the driver of generation {generation} to stop ({args.mode})")
    return OK
