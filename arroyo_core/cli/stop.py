"""`arroyo stop`: asks a running job to stop, from anywhere that reaches its checkpoints."""

from __future__ import annotations

import argparse
import json
import time

from arroyo_core.cli.commands import CommandGroup, Commands
from arroyo_core.cli.exits import OK
from arroyo_core.cli.job_states import JobState, read_job_state
from arroyo_core.cli.jobs import add_job_arguments, open_backend
from arroyo_core.cli.options import JSON, add_format
from arroyo_core.runtime.events import StopMode
from arroyo_core.runtime.status import Life
from arroyo_core.runtime.stop import StopFile
from arroyo_core.state.inspection import find_started_jobs

_MODES = {
    StopMode.CHECKPOINT: "end the epoch and commit it (default)",
    StopMode.GRACEFUL: "the same, and tell sources and operators",
    StopMode.IMMEDIATE: "give the running epoch up",
}


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "stop",
        group=CommandGroup.JOBS,
        runs_pipelines=False,
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
    found = read_job_state(backend, now_us=time.time_ns() // 1000)
    # Of a driver that cannot be looked up nobody knows: a file for one that is gone stops nothing.
    is_asked = found.state in (Life.RUNNING, Life.UNKNOWN)
    if is_asked:
        StopFile.at(backend.storage.url, backend.job_id, found.generation or 0).write(StopMode(args.mode))
    if args.format == JSON:
        finished = found.epoch if found.state == Life.FINISHED else None
        answer = {"job": backend.job_id, "is_asked": is_asked, "state": found.state, "finished_epoch": finished}
        print(json.dumps({**answer, "generation": found.generation, "mode": args.mode}, indent=2))
    else:
        print(_answer(found, args.mode) if is_asked else f"{why_not_running(found)}: there is nothing to stop")
    return OK


def _answer(found: JobState, mode: str) -> str:
    return f"{found.job}: asked the driver of generation {found.generation} to stop ({mode}){doubt_about(found)}"


def doubt_about(found: JobState) -> str:
    """What is added to an answer where nobody knows whether a driver hears."""
    return " (it has not been heard of for a while, and may be gone)" if found.state == Life.UNKNOWN else ""


def why_not_running(found: JobState) -> str:
    """What became of a job that does not run, as a clause."""
    how = {
        Life.FINISHED: f"has finished, at epoch {found.epoch}",
        Life.STOPPED: f"was stopped, at epoch {found.epoch}",
        Life.FAILED: f"has failed: {found.error}",
        Life.DEAD: f"does not run: its driver (pid {found.pid} on {found.host}) is gone",
    }
    return f"{found.job} {how.get(Life(found.state), 'does not run')}"
