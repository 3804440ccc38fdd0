"""`arroyo test`: the tests of pipelines, in process or on Spark."""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import itertools
import json
import logging
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from arroyo_core.api.visible import visible
from arroyo_core.cli.commands import CommandGroup, Commands
from arroyo_core.cli.exits import FAILURE, OK
from arroyo_core.cli.options import (
    JSON,
    TEXT,
    add_format,
    add_planning,
    add_spark,
    bundle_opener,
    given_parameters,
    spark_conf,
)
from arroyo_core.cli.terminal import is_coloured
from arroyo_core.errors import SetupError
from arroyo_core.pipeline.views.labels import count

if TYPE_CHECKING:
    from arroyo_core.runtime.steps import EpochExecutor
    from arroyo_core.spark.shuffles import Spark
    from arroyo_testing.cases.comparison import Difference
    from arroyo_testing.cases.files import CaseFile
    from arroyo_testing.cases.running import MakeExecutor, Place
    from arroyo_testing.cases.spec import CaseSpec
    from arroyo_testing.cases.suite import CaseResult, CrashResult, PipelineCases
    from arroyo_testing.clock import FakeClock

_DEFAULT_ROWS = 20


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "test",
        group=CommandGroup.PIPELINES,
        help="run the tests of pipelines",
        description="Run the tests of pipeline files: those under 'tests' in the file, and those beside it in "
        "NAME_test.yaml. Sources get the rows that a test gives, and sinks write nothing. Exit code 0 when all "
        "pass, 1 when any fails, 2 for mistakes in the files.",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="a pipeline, a file of tests, or a folder of them")
    parser.add_argument(
        "-k", metavar="PATTERN", dest="pattern", help="only tests with this in their name; * and ? match"
    )
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument("--spark", action="store_true", help="run them on Spark (--master, --conf), not in this process")
    ways.add_argument(
        "--live", action="store_true", help="run them in live workers, as threads of this process: execution: live"
    )
    ways.add_argument("--crash-all", action="store_true", help="repeat each test with a crash at every call to storage")
    ways.add_argument("--update", action="store_true", help="expect from now on what comes: change the files")
    ways.add_argument(
        "--record", action="store_true", help="make NAME_test.yaml from the first rows of the pipeline's real sources"
    )
    parser.add_argument(
        "--rows",
        type=int,
        default=_DEFAULT_ROWS,
        metavar="N",
        help="with --record: how many rows of each source (default: %(default)s)",
    )
    parser.add_argument("--junit-xml", metavar="FILE", help="also write the results there, for build servers")
    add_format(parser, help="json: the results as one object, at the end")
    add_planning(parser, has_parallelism=False)
    add_spark(parser, default="local[2]")
    parser.set_defaults(command=test)


def test(args: argparse.Namespace) -> int:
    # Imported here, because the test kit brings much that no other command needs.
    from arroyo_testing.cases.files import load_case_files

    paths = [Path(file) for file in args.files]
    for path in paths:
        if not path.exists():
            raise SetupError(f"there is no file {path}")
    if args.record:
        return _record(paths, args)
    files = [_chosen(file, args.pattern) for file in load_case_files(paths)]
    if not any(file.cases for file in files):
        raise SetupError(_nothing_found(args))
    results: list[CaseResult | CrashResult] = []
    with _quiet(), _places(args) as new_place:
        for file in files:
            if file.cases:
                results += _run_file(file, args, new_place)
    return _finish(results, args)


def _run_file(
    file: CaseFile, args: argparse.Namespace, new_place: Callable[[], Place]
) -> list[CaseResult | CrashResult]:
    from arroyo_testing.cases.report import failure_text, result_line
    from arroyo_testing.cases.updating import update_text

    say = partial(_say, args)
    say(str(file.path))
    pipeline = _pipeline(file.pipeline, args)
    results: list[CaseResult | CrashResult] = []
    updates: list[Difference] = []
    for spec in file.cases:
        result = pipeline.run(file, spec, new_place())
        if args.update and result.differences and result.error is None:
            updates += result.differences
            say(f"  new   {spec.name}  ({count(len(result.differences), 'expectation')} updated)")
            results.append(replace(result, differences=()))
            continue
        say(result_line(result))
        results.append(result)
        if not result.is_passed:
            text = failure_text(result, is_coloured=is_coloured(sys.stdout), is_debug=args.debug)
            say("\n" + _indented(text) + "\n")
        elif args.crash_all and spec.error is None:
            results.append(_crash_all(pipeline, file, spec, say))
    if updates:
        file.path.write_text(update_text(file.text, updates, file=str(file.path)), encoding="utf-8")
    return results


def _crash_all(pipeline: PipelineCases, file: CaseFile, spec: CaseSpec, say: Callable[[str], None]) -> CrashResult:
    from arroyo_testing.cases.report import crash_failures, crash_line

    def show(done: int, total: int) -> None:
        if sys.stderr.isatty():
            end = "\r\x1b[2K" if done == total else ""
            print(f"\r  {done} of {total} crashes{end}", end="", file=sys.stderr, flush=True)

    result = pipeline.crash_all(file, spec, show)
    say(crash_line(result))
    if result.failures:
        say("\n" + _indented(crash_failures(result)) + "\n")
    return result


def _finish(results: Sequence[CaseResult | CrashResult], args: argparse.Namespace) -> int:
    from arroyo_testing.cases.report import is_passed, junit_xml, result_json

    if args.junit_xml:
        Path(args.junit_xml).write_bytes(junit_xml(results))
    failed = sum(not is_passed(result) for result in results)
    verdict = f"{failed} failed" if failed else "all passed"
    _say(args, f"{count(len(results), 'test')}, {verdict}")
    if args.format == JSON:
        print(json.dumps({"failed": failed, "tests": [result_json(result) for result in results]}, indent=2))
    return FAILURE if failed else OK


def _record(paths: Sequence[Path], args: argparse.Namespace) -> int:
    from arroyo_testing.cases.files import is_case_file
    from arroyo_testing.cases.recording import record_case

    if args.rows < 1:
        raise SetupError("--rows must be at least 1")
    for path in paths:
        if path.is_dir() or is_case_file(path):
            raise SetupError(f"--record takes pipelines: {path} is none")
    recorded = []
    for path in paths:
        recorded.append(str(record_case(_pipeline(path, args), rows=args.rows)))
        _say(args, f"{recorded[-1]}: recorded")
    if args.format == JSON:
        print(json.dumps({"recorded": recorded}, indent=2))
    return OK


def _pipeline(path: Path, args: argparse.Namespace) -> PipelineCases:
    from arroyo_testing.cases.suite import PipelineCases

    return PipelineCases(path, bundles=bundle_opener(args), parameters=given_parameters(args))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """What jobs log about themselves is no news in a test."""
    logger = logging.getLogger("arroyo_core")
    before = logger.propagate
    handler = logging.NullHandler()
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.propagate = before
        logger.removeHandler(handler)


@contextlib.contextmanager
def _places(args: argparse.Namespace) -> Iterator[Callable[[], Place]]:
    """Makes a fresh place for each test."""
    from arroyo_testing.cases.running import MemoryPlace, live_tasks

    if args.live:
        with tempfile.TemporaryDirectory(prefix="arroyo-test-", ignore_cleanup_errors=True) as root:
            yield partial(_place_in, Path(root), itertools.count(), live_tasks)
        return
    if not args.spark:
        yield MemoryPlace
        return
    from arroyo_core.spark.session import start_spark, stop_spark

    folder = Path(tempfile.mkdtemp(prefix="arroyo-test-"))
    spark = start_spark("arroyo test", master=args.master, conf=spark_conf(args), is_quiet=not args.debug)
    try:
        yield partial(_place_in, folder, itertools.count(), partial(_spark_tasks, spark))
    finally:
        stop_spark(spark)
        shutil.rmtree(folder, ignore_errors=True)


def _spark_tasks(spark: Spark, clock: FakeClock) -> contextlib.AbstractContextManager[EpochExecutor]:
    from arroyo_core.spark.executor import SparkExecutor
    from arroyo_testing.cases.running import RemoteTasks

    return contextlib.nullcontext(RemoteTasks(SparkExecutor(spark), clock))


def _place_in(root: Path, numbers: Iterator[int], make_executor: MakeExecutor) -> Place:
    from arroyo_testing.cases.running import FolderPlace

    return FolderPlace((root / str(next(numbers))).as_uri(), make_executor)


def _chosen(file: CaseFile, pattern: str | None) -> CaseFile:
    if pattern is None:
        return file
    wanted = f"*{pattern}*".casefold()
    return replace(file, cases=tuple(case for case in file.cases if fnmatch.fnmatchcase(case.name.casefold(), wanted)))


def _nothing_found(args: argparse.Namespace) -> str:
    files = ", ".join(args.files)
    if args.pattern is not None:
        return f"no test in {files} has {args.pattern!r} in its name"
    return f"there are no tests in {files}: write them under 'tests', or in NAME_test.yaml beside NAME.yaml"


def _say(args: argparse.Namespace, text: str) -> None:
    """For people, while the tests run."""
    if args.format == TEXT:
        print(visible(text), flush=True)


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" if line else "" for line in text.splitlines())
