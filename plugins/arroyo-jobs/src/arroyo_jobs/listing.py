"""`arroyo ps` and `arroyo status`: which jobs run, and how they are; from what they store, without talking to them."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from arroyo_core.api.visible import visible
from arroyo_core.cli.commands import CommandGroup, Commands
from arroyo_core.cli.exits import FAILURE, OK
from arroyo_core.cli.formats import format_lag, format_size, format_time
from arroyo_core.cli.job_states import HEALTHY, JobState, read_job_state
from arroyo_core.cli.jobs import add_job_arguments, open_backend
from arroyo_core.cli.options import JSON, add_format
from arroyo_core.cli.tables import print_rows
from arroyo_core.state import ParquetBackend, get_storage_provider
from arroyo_core.state.inspection import find_started_jobs
from arroyo_jobs.places import jobs_at


def add_commands(commands: Commands) -> None:
    ps = commands.add_parser(
        "ps",
        group=CommandGroup.JOBS,
        runs_pipelines=False,
        help="list jobs, and whether they run",
        description="List the jobs below checkpoint URLs, and those of pipeline files: whether they run, how far they "
        "are, and who runs them.",
    )
    ps.add_argument(
        "places",
        nargs="*",
        default=["."],
        metavar="URL|FILE|FOLDER",
        help="a checkpoint URL, a pipeline's file, or a folder of either (default: this folder)",
    )
    add_format(ps)
    ps.set_defaults(command=_ps)
    status = commands.add_parser(
        "status",
        group=CommandGroup.JOBS,
        runs_pipelines=False,
        help="show how a job is, and its nodes",
        description="Show how a job is, and what its nodes did in the last epoch. The exit code is 0 for a job that "
        "runs, has finished or was stopped, and 1 for one that failed or whose driver is gone.",
    )
    add_job_arguments(status)
    add_format(status)
    status.set_defaults(command=_status)


def _ps(args: argparse.Namespace) -> int:
    now_us = time.time_ns() // 1000
    named = list(dict.fromkeys(job for place in args.places for job in jobs_at(place)))
    states = [read_job_state(ParquetBackend(get_storage_provider(job.url), job.job), now_us=now_us) for job in named]
    if args.format == JSON:
        print(json.dumps([_listed(state) for state in states], indent=2))
        return OK
    if not states:
        print(f"no jobs in {', '.join(args.places)}")
        return OK
    columns = ["job", "state", "epoch", "last commit", "rows behind", "generation", "host", "pid", "url"]
    print_rows(columns, [_row(state, now_us) for state in states], right=("epoch", "rows behind", "generation", "pid"))
    return OK


def _status(args: argparse.Namespace) -> int:
    now_us = time.time_ns() // 1000
    state = read_job_state(open_backend(args, find_started_jobs), now_us=now_us)
    code = OK if state.state in HEALTHY else FAILURE
    if args.format == JSON:
        print(json.dumps(asdict(state), indent=2))
        return code
    for name, value in _facts(state, now_us).items():
        if value:
            print(f"{name + ':':13}{visible(str(value))}")
    if state.operators:
        print()
        columns = ["node", "rows in", "rows out", "rows behind", "busy", "state", "watermark", "warnings"]
        rows = [_node_row(name, numbers) for name, numbers in state.operators.items()]
        print_rows(columns, rows, right=("rows in", "rows out", "rows behind", "busy", "state"))
    if state.running_operators:
        print("\nso far in the running epoch:")
        columns = ["node", "rows in", "rows out", "rows behind", "busy"]
        rows = [_node_row(name, numbers)[: len(columns)] for name, numbers in state.running_operators.items()]
        print_rows(columns, rows, right=columns[1:])
    return code


def _listed(state: JobState) -> dict[str, Any]:
    fields = asdict(state)
    # That is for `arroyo status`.
    del fields["operators"], fields["running_operators"]
    return fields


def _row(state: JobState, now_us: int) -> list[object]:
    return [
        state.job,
        state.state,
        _shown(state.epoch),
        _ago(state.committed_us, now_us) or "-",
        "-" if state.backlog is None else f"{state.backlog:,}",
        _shown(state.generation),
        _shown(state.host),
        _shown(state.pid),
        state.url,
    ]


def _facts(state: JobState, now_us: int) -> dict[str, str]:
    driver = f"{state.host}, pid {state.pid}" if state.host else ""
    since = f", since {format_time(state.started_us)}" if state.started_us is not None else ""
    return {
        "job": state.job,
        "state": state.state,
        "url": state.url,
        "driver": driver + since,
        "spark ui": state.spark_ui,
        "generation": _shown(state.generation),
        "epoch": _shown(state.epoch),
        "running": _running(state),
        "last commit": _ago(state.committed_us, now_us),
        "rows behind": "" if state.backlog is None else f"{state.backlog:,}",
        "parallelism": "" if state.parallelism is None else str(state.parallelism),
        "restarts": "" if state.restarts is None else str(state.restarts),
        "last error": state.error,
    }


def _running(state: JobState) -> str:
    if state.running is None:
        return ""
    running = state.running
    return f"epoch {running['epoch']}, {running['source_rows']:,} rows in after {running['duration_s']:.1f} s"


def _node_row(name: str, numbers: Mapping[str, Any]) -> list[object]:
    watermark_us = numbers.get("watermark_us")
    return [
        name,
        f"{numbers.get('rows_in', 0):,}",
        f"{numbers.get('rows_out', 0):,}",
        f"{numbers.get('backlog', 0):,}",
        f"{numbers.get('busy_share', 0):.0%}",
        format_size(numbers.get("state_bytes", 0)),
        "-" if watermark_us is None else format_time(watermark_us),
        "; ".join(numbers.get("warnings", ())),
    ]


def _ago(time_us: int | None, now_us: int) -> str:
    return "" if time_us is None else f"{format_lag(min(time_us, now_us), now_us=now_us)} ago"


def _shown(value: object) -> str:
    return "-" if value is None else str(value)
