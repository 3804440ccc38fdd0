"""`arroyo run` with several pipelines: as many jobs in one Spark session."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, redirect_stdout
from typing import TextIO

from arroyo_core.cli.exits import OK
from arroyo_core.cli.failures import JobsFailedError
from arroyo_core.cli.log_lines import WARNING, LogLines
from arroyo_core.cli.observers import enter_observers
from arroyo_core.cli.options import JSON, spark_conf
from arroyo_core.cli.progress import Progress, ProgressKind, choose_progress
from arroyo_core.cli.provisioning import provision_for
from arroyo_core.cli.run import job_log, set_up_logging, stopping
from arroyo_core.cli.run import run as run_one
from arroyo_core.cli.run_options import start_options
from arroyo_core.cli.tables import print_rows
from arroyo_core.plugin import installed_plugins
from arroyo_core.runtime.start import StartError, StartOptions
from arroyo_core.spark.session import leave_spark, start_spark
from arroyo_core.spark.shuffles import Spark
from arroyo_core.spark.slots import slots_of
from arroyo_core.spark.target import resolve_target, shown_master
from arroyo_jobs.job_lines import JsonLines, name_job, named_progress
from arroyo_jobs.job_run import JobRun
from arroyo_jobs.pipeline_files import find_files
from arroyo_jobs.planned_jobs import PlannedJob, plan_jobs
from arroyo_jobs.shared_spark import shared_master, told_as_jobs
from arroyo_jobs.threads import SetJob, StopSignals, run_jobs


def run_several(args: argparse.Namespace) -> int:
    """Run `args.files` until each has ended; raises `JobsFailedError` where any has failed.

    Text for people goes to stderr, what sinks print or the JSON that is asked for to stdout.
    """
    files = find_files(args.files)
    if len(files) == 1:
        (args.file,) = files
        return run_one(args)
    with job_log(args) as lines:
        return _run_files(args, files, lines)


def _run_files(args: argparse.Namespace, files: Sequence[str], lines: LogLines) -> int:
    log = set_up_logging(lines, is_debug=args.debug)
    log.addFilter(name_job)
    conf = spark_conf(args)
    _check_flags(args, files)
    planned = plan_jobs(files, args)
    is_json = args.format == JSON
    kind = args.progress or choose_progress(is_json=is_json, out=sys.stderr, data=sys.stdout, environment=os.environ)
    if args.progress == ProgressKind.LIVE:
        print("arroyo: the live view is for one pipeline; a line for each epoch instead", file=sys.stderr)
    if kind == ProgressKind.LIVE:
        kind = ProgressKind.PLAIN
    is_quiet = kind == ProgressKind.NONE
    with ExitStack() as resources:
        runs = _runs(planned, args, ProgressKind(kind), lines, out=sys.stdout if is_json else None)
        if is_json:
            resources.enter_context(redirect_stdout(sys.stderr))
        observers = enter_observers(args, [run.plan for run in runs], installed_plugins(), resources)
        for run in runs:
            run.observers = observers
        left = [run for run in runs if not run.has_finished_before()]
        if left:
            _open_spark(args, conf, left, lines, resources)
        # Before Spark goes: jobs that are left behind would report it.
        resources.callback(_end, runs, log, shows_table=not is_quiet and not lines.is_json)
        resources.enter_context(stopping(StopSignals([run.job for run in left]), Progress(lines=lines)))
        _wait(left)
    failures = {f"{run.job.name} failed:": run.job.error for run in runs if run.job.error is not None}
    if failures:
        raise JobsFailedError(failures)
    return OK


def print_outcomes(jobs: Sequence[SetJob], out: TextIO) -> None:
    """A table of what became of each job."""
    columns = ("job", "outcome", "epochs", "rows in", "restarts", "time", "")
    rows = [
        (
            job.name,
            job.outcome,
            f"{job.result.epochs:,}",
            f"{job.result.source_rows:,}",
            f"{job.result.restarts:,}",
            f"{job.result.duration_s:.1f} s",
            _remark(job),
        )
        for job in jobs
    ]
    print(file=out)
    print_rows(columns, rows, out, right=("epochs", "rows in", "restarts", "time"))


def _remark(job: SetJob) -> str:
    if job.error is not None:
        return next(iter(str(job.error).splitlines()), type(job.error).__name__)
    is_from_before = job.result.is_finished and not job.result.epochs
    return f"in an earlier run, at epoch {job.result.resumed_from}" if is_from_before else ""


def _check_flags(args: argparse.Namespace, files: Sequence[str]) -> None:
    if args.execution == "live":
        raise StartError(
            "--execution live goes with one pipeline: its workers keep the slots of Spark that the others need"
        )
    if start_options(args) != StartOptions():
        raise StartError(
            "flags that say how a job starts (--from-epoch, --fresh, --fork-from, --allow-drop, --allow-change, "
            f"--accept-udf-change) go with one pipeline, and {len(files)} are given: run that one alone with its flag, "
            "stop it after its first epoch, and run all of them then"
        )


def _runs(
    planned: Sequence[PlannedJob], args: argparse.Namespace, kind: ProgressKind, lines: LogLines, *, out: TextIO | None
) -> list[JobRun]:
    width = max(len(job.name) for job in planned)
    return [
        JobRun(
            job,
            named_progress(job.name, kind, lines, width=width),
            max_restarts=args.max_restarts,
            json=JsonLines(job.pipeline.plan, out) if out is not None else None,
        )
        for job in planned
    ]


def _open_spark(
    args: argparse.Namespace, conf: Mapping[str, str], runs: Sequence[JobRun], lines: LogLines, resources: ExitStack
) -> None:
    """Give all of them one Spark, with room for the tasks of all at once, unless they run in this process."""
    if args.in_process:
        return
    slots = sum(run.plan.width for run in runs)
    target = resolve_target(args.master, conf)
    master = shared_master(target, slots)
    provision = provision_for(args, [run.plan for run in runs], installed_plugins(), target=target, lines=lines)
    there = slots_of(master)
    if 0 < there < slots:
        warning = (
            f"{master} runs {there} tasks at once, and the pipelines have {slots}: their epochs wait for each other; "
            f"leave the master out, or give local[{slots}]"
        )
        print(lines.render(warning, level=WARNING), end="", file=sys.stderr, flush=True)
    wished = told_as_jobs([run.plan for run in runs])
    if wished:
        print(lines.render(wished, level=WARNING), end="", file=sys.stderr, flush=True)
    started = f"arroyo: starting Spark ({shown_master(master)}) for {len(runs)} pipelines"
    print(lines.render(started), end="", file=sys.stderr, flush=True)
    name = f"{len(runs)} pipelines"
    spark: Spark = start_spark(
        name, master=master, conf=conf, is_quiet=not args.debug, workers=slots, provision=provision
    )
    resources.callback(leave_spark, spark)
    for run in runs:
        run.spark = spark


def _wait(runs: Sequence[JobRun]) -> None:
    """Until all have ended; that one has is told at once."""
    by_name = {run.job.name: run for run in runs}
    for ended, job in enumerate(run_jobs([run.job for run in runs]), start=1):
        by_name[job.name].on_end(len(runs) - ended)


def _end(runs: Sequence[JobRun], log: logging.Handler, *, shows_table: bool) -> None:
    """Say what became of each; who still runs is told to nobody any more."""
    for run in runs:
        run.close()
    if any(not run.job.has_ended for run in runs):
        log.setLevel(logging.CRITICAL + 1)
    if shows_table:
        print_outcomes([run.job for run in runs], sys.stderr)
