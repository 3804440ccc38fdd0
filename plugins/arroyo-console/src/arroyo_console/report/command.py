"""`arroyo report`: a job's graph, rates, epochs, checkpoints and errors, as one file."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

from arroyo_devtools.lint.secrets import hide_secrets

from arroyo_console.report.facts import read_run
from arroyo_console.report.page import render_report
from arroyo_core.cli.commands import CommandGroup, Commands
from arroyo_core.cli.exits import OK
from arroyo_core.cli.jobs import add_job_arguments, is_pipeline, open_backend
from arroyo_core.cli.options import add_output, write_output
from arroyo_core.errors import ArroyoError
from arroyo_core.pipeline import plan_file
from arroyo_core.plugin import installed_plugins
from arroyo_core.state.inspection import find_started_jobs


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "report",
        group=CommandGroup.JOBS,
        runs_pipelines=False,
        help="write what a job did as one HTML file",
        description="Write what a job did as one HTML file without scripts: its graph, rates, epochs, checkpoints and "
        "errors. What has the form of a secret is hidden; where the pipeline's file is named, its secrets are as well.",
    )
    add_job_arguments(parser)
    add_output(parser)
    parser.set_defaults(command=report)


def report(args: argparse.Namespace) -> int:
    now_us = time.time_ns() // 1000
    # First: it refuses the file of a pipeline where pipelines are not trusted, and the next one plans it.
    backend = open_backend(args, find_started_jobs)
    hide = _hiding(args.url)
    facts = read_run(backend, now_us=now_us)
    write_output(render_report(facts, now_us=now_us, hide=hide), args.output)
    return OK


def _hiding(place: str) -> Callable[[str], str]:
    """What keeps secrets out of all texts of the report: by their form, and by value where the pipeline is known."""
    if not is_pipeline(place):
        return hide_secrets
    try:
        redact = plan_file(Path(place), plugins=installed_plugins(), environment=os.environ).redact
    except ArroyoError as error:
        error.add_note("the report needs the pipeline's secrets to hide them; name the checkpoint URL instead")
        raise
    return lambda text: hide_secrets(redact(text))
