"""`arroyo run`: a pipeline on Spark, from a terminal."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from types import FrameType, TracebackType
from typing import Any

from arroyo_core.cli.exits import OK
from arroyo_core.cli.json_output import JsonOutput
from arroyo_core.cli.lasting_streams import lasting_streams
from arroyo_core.cli.log_lines import LogFormat, LogFormatter, LogLines
from arroyo_core.cli.observers import Observer, enter_observers
from arroyo_core.cli.options import JSON, given_parameters, spark_conf
from arroyo_core.cli.progress import (
    BriefProgress,
    PlainProgress,
    Progress,
    ProgressKind,
    choose_progress,
    show_summary,
)
from arroyo_core.cli.provisioning import provision_for
from arroyo_core.cli.run_options import start_options
from arroyo_core.pipeline.plan import Plan
from arroyo_core.plugin import PluginSet, known_elsewhere
from arroyo_core.runtime.job import Listeners
from arroyo_core.runtime.local import LocalExecutor
from arroyo_core.runtime.results import JobResult
from arroyo_core.runtime.start import Start, StartOptions
from arroyo_core.runtime.stop import StopSignal
from arroyo_core.spark.execution import Execution
from arroyo_core.spark.pipeline import Pipeline
from arroyo_core.spark.session import leave_spark, start_spark
from arroyo_core.spark.target import resolve_target
from arroyo_core.state import default_warm_cache

logger = logging.getLogger(__name__)


def run(args: argparse.Namespace) -> int:
    """Run `args.file`; text for people goes to stderr, what sinks print or the JSON that is asked for to stdout."""
    with job_log(args) as lines:
        return _run_file(args, lines)


@contextmanager
def job_log(args: argparse.Namespace) -> Iterator[LogLines]:
    """How to write what is told about jobs. Whoever reads stdout or stderr may stop doing so: the jobs go on."""

    def on_closed(name: str) -> None:
        logger.warning("nobody reads %s any more: what is printed there from now on is dropped", name)

    with lasting_streams(on_closed):
        yield LogLines(LogFormat(args.log_format))


def _run_file(args: argparse.Namespace, lines: LogLines) -> int:
    log = set_up_logging(lines, is_debug=args.debug)
    conf = spark_conf(args)
    options = start_options(args)
    pipeline = Pipeline.from_yaml(
        args.file,
        parallelism=args.parallelism,
        allow_unpinned=args.insecure_udfs,
        parameters=given_parameters(args),
    )
    start = pipeline.check_start(options)
    is_json = args.format == JSON
    kind = args.progress or choose_progress(is_json=is_json, out=sys.stderr, data=sys.stdout, environment=os.environ)
    if lines.is_json and kind == ProgressKind.LIVE:
        kind = ProgressKind.PLAIN
    progress = open_progress(ProgressKind(kind), pipeline.plan, pipeline.plugins, lines=lines)
    if args.progress == ProgressKind.LIVE and type(progress) is PlainProgress and not lines.is_json:
        print(_missing_live_view(), file=sys.stderr)
    log.setStream(progress)
    with ExitStack() as resources:
        json_output = JsonOutput(pipeline.plan, progress.shared(sys.stdout)) if is_json else None
        if json_output is not None:
            resources.enter_context(json_output)
        result = finished_before(start, options, pipeline.plan)
        if result is None:
            result = _run(args, pipeline, conf, options, progress, json_output)
        if json_output is not None:
            json_output.on_end(result)
    if kind != ProgressKind.NONE:
        show_summary(pipeline.plan, result, sys.stderr, lines)
    return OK


def finished_before(start: Start | None, options: StartOptions, plan: Plan) -> JobResult | None:
    """The result of a job that an earlier run has finished: it needs no Spark, and leaves no sign of a driver."""
    is_going_on = options.from_epoch is None and options.fork_from is None
    if start is None or not start.is_finished or not is_going_on:
        return None
    return JobResult(job_id=plan.job_id, is_finished=True, resumed_from=start.parent_epoch)


def _run(
    args: argparse.Namespace,
    pipeline: Pipeline,
    conf: dict[str, str],
    options: StartOptions,
    progress: Progress,
    json_output: JsonOutput | None,
) -> JobResult:
    plan = pipeline.plan
    stop = StopSignal()
    with ExitStack() as resources:
        observers = enter_observers(args, [plan], pipeline.plugins, resources)
        resources.push(partial(_tell_end, observers, plan.job_id))
        spark, executor = None, None
        if args.in_process:
            executor = LocalExecutor(pipeline.plugins, cache=default_warm_cache())
        else:
            target = resolve_target(args.master, conf)
            provision = provision_for(args, [plan], pipeline.plugins, target=target, lines=progress.lines)
            started = f"{plan.job_id}: starting Spark ({target})"
            print(progress.lines.render(started), end="", file=sys.stderr, flush=True)
            spark = start_spark(
                plan.job_id,
                master=args.master,
                conf=conf,
                is_quiet=not args.debug,
                workers=plan.width,
                is_live=(args.execution or plan.execution) != Execution.JOBS,
                provision=provision,
            )
            resources.callback(leave_spark, spark)
        resources.enter_context(stopping(stop, progress))
        # After Spark: its JVM writes to the terminal itself when it starts.
        resources.enter_context(progress)
        return pipeline.run(
            spark,
            executor=executor,
            listener=Listeners(progress, *observers, *([json_output] if json_output is not None else [])),
            stop=stop,
            start=options,
            max_restarts=args.max_restarts,
            execution=args.execution,
        )


def _tell_end(
    observers: Sequence[Observer],
    job_id: str,
    kind: type[BaseException] | None,
    error: BaseException | None,
    trace: TracebackType | None,
) -> None:
    for observer in observers:
        if error is not None:
            observer.on_failure(job_id, error)
        observer.on_end(job_id)


def open_progress(kind: ProgressKind, plan: Plan, plugins: PluginSet, *, lines: LogLines | None = None) -> Progress:
    """What shows the run; lines where no plugin has a live view. Raises `PluginError` where two have one."""
    if kind is ProgressKind.NONE:
        return Progress(lines=lines)
    if kind is ProgressKind.BRIEF:
        return BriefProgress(lines=lines)
    live: Progress | None = None
    if kind is ProgressKind.LIVE:
        live = plugins.hooks.call_one("arroyo_progress", Progress, what="the live view", plan=plan, out=sys.stderr)
    return live if live is not None else PlainProgress(lines=lines)


def _missing_live_view() -> str:
    distribution = known_elsewhere("progress").get(ProgressKind.LIVE)
    hint = f": it is in {distribution} (pip install {distribution})" if distribution else ""
    return f"arroyo: no live view is installed{hint}; a line for each epoch instead"


def set_up_logging(lines: LogLines, *, is_debug: bool) -> logging.StreamHandler[Any]:
    """Our own warnings are shown; those of libraries, which come with tracebacks, only with `--debug`."""
    shown: logging.StreamHandler[Any] = logging.StreamHandler(sys.stderr)
    shown.setFormatter(LogFormatter(lines))
    if is_debug:
        logging.basicConfig(level=logging.DEBUG, handlers=[shown])
        return shown
    logging.getLogger("arroyo_core").addHandler(shown)
    # py4j logs through the root logger, which without a handler would print.
    logging.getLogger().addHandler(logging.NullHandler())
    return shown


@contextmanager
def stopping(stop: StopSignal, progress: Progress) -> Iterator[None]:
    """The first Ctrl-C or SIGTERM ends the epoch and then the job; the second one stops at once."""
    signals = 0

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal signals
        signals += 1
        if signals > 1:
            raise KeyboardInterrupt
        stop.request()
        progress.on_stop_requested("stopping after this epoch; once more to stop at once")

    previous = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
