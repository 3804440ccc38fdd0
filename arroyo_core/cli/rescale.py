"""`arroyo rescale`: asks a running job for another parallelism, from anywhere that reaches its checkpoints."""

from __future__ import annotations

import argparse
import json
import time

from arroyo_core.cli.arguments import parallelism
from arroyo_core.cli.commands import CommandGroup, Commands
from arroyo_core.cli.exits import OK
from arroyo_core.cli.job_states import JobState, read_job_state
from arroyo_core.cli.jobs import add_job_arguments, open_backend
from arroyo_core.cli.options import JSON, add_format
from arroyo_core.cli.stop import doubt_about, why_not_running
from arroyo_core.errors import ConfigError
from arroyo_core.runtime.rescale import RescaleFile
from arroyo_core.runtime.status import Life
from arroyo_core.state.inspection import find_started_jobs


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "rescale",
        group=CommandGroup.JOBS,
        runs_pipelines=False,
        help="ask a running job to go on with another parallelism",
        description="Ask the driver of a job to go on with another parallelism: it ends its epoch, and goes on from "
        "that checkpoint, without being started again. Nodes with a parallelism of their own keep it. A job that is "
        "started again later has the parallelism that its file or `arroyo run --parallelism` says.",
    )
    add_job_arguments(parser)
    parser.add_argument(
        "--parallelism", type=parallelism, required=True, metavar="N", help="instead of the pipeline's own number"
    )
    add_format(parser)
    parser.set_defaults(command=_rescale)


def _rescale(args: argparse.Namespace) -> int:
    backend = open_backend(args, find_started_jobs)
    found = read_job_state(backend, now_us=time.time_ns() // 1000)
    if found.state not in (Life.RUNNING, Life.UNKNOWN):
        raise ConfigError(f"{why_not_running(found)}: there is nothing to rescale", value=backend.job_id)
    RescaleFile.at(backend.storage.url, backend.job_id, found.generation or 0).write(args.parallelism)
    if args.format == JSON:
        answer = {"job": backend.job_id, "state": found.state, "generation": found.generation}
        print(json.dumps({**answer, "parallelism": args.parallelism}, indent=2))
    else:
        print(_answer(found, args.parallelism))
    return OK


def _answer(found: JobState, wanted: int) -> str:
    return (
        f"{found.job}: asked the driver of generation {found.generation} to go on with parallelism {wanted}"
        f"{doubt_about(found)}; its log says so if it cannot"
    )
