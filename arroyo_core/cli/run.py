"""`arroyo run`: a pipeline on Spark, from a terminal."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType

from arroyo_core.cli.parameters import given_parameters
from arroyo_core.cli.progress import Progress, print_summary
from arroyo_core.cli.start import start_options
from arroyo_core.errors import SetupError
from arroyo_core.runtime.job import Listeners
from arroyo_core.runtime.prometheus import JobMetrics, MetricsServer
from arroyo_core.runtime.stop import StopSignal
from arroyo_core.spark.pipeline import Pipeline
from arroyo_core.spark.session import create_session, stop_session


def run(args: argparse.Namespace) -> int:
    """Run `args.file`; progress and summary go to stderr, rows of `std.stdout` to stdout."""
    progress = Progress()
    _set_up_logging(progress, is_debug=args.debug)
    conf = parse_conf(args.conf or [])
    options = start_options(args)
    pipeline = Pipeline.from_yaml(
        args.file,
        parallelism=args.parallelism,
        allow_unpinned=args.insecure_udfs,
        parameters=given_parameters(args),
    )
    plan = pipeline.plan
    pipeline.check_start(options)
    metrics = JobMetrics(plan)
    stop = StopSignal()
    with ExitStack() as resources:
        if args.metrics_port is not None:
            resources.enter_context(MetricsServer(metrics, args.metrics_port))
        print(f"{plan.job_id}: starting Spark ({args.master or 'local[*]'})", file=sys.stderr, flush=True)
        session = create_session(plan.job_id, master=args.master, conf=conf, is_quiet=not args.debug)
        resources.callback(stop_session, session)
        resources.enter_context(stopping(stop))
        result = pipeline.run(
            session,
            listener=Listeners(progress, metrics),
            stop=stop,
            start=options,
            max_restarts=args.max_restarts,
        )
    progress.end()
    print_summary(plan, result, sys.stderr)
    return 0


def _set_up_logging(progress: Progress, *, is_debug: bool) -> None:
    """Our own warnings are shown; those of libraries, which come with tracebacks, only with `--debug`."""
    shown = logging.StreamHandler(progress)
    shown.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    if is_debug:
        logging.basicConfig(level=logging.DEBUG, handlers=[shown])
        return
    logging.getLogger("arroyo_core").addHandler(shown)
    # py4j logs through the root logger, which without a handler would print.
    logging.getLogger().addHandler(logging.NullHandler())


def parse_conf(pairs: list[str]) -> dict[str, str]:
    conf = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise SetupError(f"--conf takes key=value, not {pair!r}")
        conf[key] = value
    return conf


@contextmanager
def stopping(stop: StopSignal) -> Iterator[None]:
    """The first Ctrl-C or SIGTERM ends the epoch and then the job; the second one stops at once."""
    signals = 0

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal signals
        signals += 1
        if signals > 1:
            raise KeyboardInterrupt
        stop.request()
        # Not through sys.stderr: the signal may come in the middle of a write to it.
        os.write(sys.stderr.fileno(), b"\nstopping after this epoch; once more to stop at once\n")

    previous = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
