"""Whether a driver of a job may run, for what changes checkpoints while none does."""

from __future__ import annotations

import argparse
import time

from arroyo_core.api.units import DURATION_UNITS
from arroyo_core.cli.arguments import duration_us
from arroyo_core.cli.job_states import ENDED, read_job_state
from arroyo_core.state import ParquetBackend
from arroyo_core.state.offline import RunningJobError, check_quiet

#: How long nothing must have been written before a job counts as stopped.
QUIET_US = 10 * DURATION_UNITS["m"]


def add_quiet_arguments(parser: argparse.ArgumentParser) -> None:
    """What `check_ended` needs to know."""
    parser.add_argument(
        "--quiet-for",
        type=duration_us,
        default=QUIET_US,
        metavar="TIME",
        help="refuse unless nothing was written for so long, so that no driver runs (default: 10m)",
    )
    parser.add_argument("--force", action="store_true", help="do not ask whether a driver runs")


def check_ended(backend: ParquetBackend, quiet_us: int) -> None:
    """Raise `RunningJobError` unless the driver has ended; of one that did not say so, unless it was quiet for long."""
    found = read_job_state(backend, now_us=time.time_ns() // 1000)
    if found.is_running:
        raise RunningJobError(
            f"job {found.job!r} runs (pid {found.pid} on {found.host}): stop it with `arroyo stop`, or add --force to "
            "take the job away from it"
        )
    if found.state not in ENDED:
        check_quiet(backend, quiet_us)
