"""The entry point of `arroyo`: arguments, dispatch, and the one place where errors become exit codes.

A command is a parser whose default `command` is a function from the arguments to an exit code.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import version

from arroyo_core.cli import plan, plugins, start, state_commands, stop, udf, validate, watching
from arroyo_core.cli.arguments import port, restarts
from arroyo_core.cli.commands import CommandGroup, Commands, RootParser
from arroyo_core.cli.diagnostics import print_mistake, print_report, render_mistake
from arroyo_core.cli.exits import FAILURE, INTERRUPTED, MISTAKE
from arroyo_core.cli.failures import JobsFailedError
from arroyo_core.cli.options import add_planning, add_spark
from arroyo_core.cli.pipeline_files import find_files
from arroyo_core.errors import ArroyoError, Domain, InvalidPipelineError, OperatorError, PipelineError, error_domain
from arroyo_core.plugin import installed_plugins
from arroyo_core.runtime.job import MAX_RESTARTS


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns 0, 2 for what the user can fix, 1 for other failures."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    # A terminal that cannot show a character is no reason to fail.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    args = _parser(arguments).parse_args(arguments)
    try:
        code: int = args.command(args)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has seen enough. Python flushes once more at exit: give it somewhere to flush to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        return _fail(error, is_debug=args.debug)
    return code


def _parser(arguments: Sequence[str] = ()) -> argparse.ArgumentParser:
    """The parser of all commands; of the core's own alone where `arguments` begin with one of those.

    To load all plugins takes half a second, which `arroyo stop` need not wait for.
    """
    parser = RootParser(prog="arroyo", description="Stream-processing pipelines in YAML, on Spark.")
    parser.add_argument("--version", action="version", version=f"arroyo-core {version('arroyo-core')}")
    parser.add_argument("--debug", action="store_true", help="show tracebacks")
    commands = Commands(parser)
    _add_run(commands)
    for module in (validate, plan, stop, state_commands, plugins, udf):
        module.add_command(commands)
    if next((word for word in arguments if not word.startswith("-")), None) not in commands.names:
        for _ in installed_plugins().hooks.call_each(
            "arroyo_add_command", within=commands.registering, commands=commands
        ):
            pass
    return parser


def _add_run(commands: Commands) -> None:
    parser = commands.add_parser(
        "run",
        group=CommandGroup.JOBS,
        help="run pipelines on Spark",
        description="Run pipelines on Spark, all in one session, until their data ends, or Ctrl-C.",
    )
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="a pipeline in YAML, or a folder of them; several run beside each other",
    )
    add_planning(parser)
    add_spark(parser)
    parser.add_argument(
        "--in-process",
        action="store_true",
        help="without Spark, one task after the other: for small data and tests",
    )
    start.add_arguments(parser)
    parser.add_argument(
        "--max-restarts",
        type=restarts,
        default=MAX_RESTARTS,
        metavar="N",
        help="how often the job restarts by itself after a failure that may pass (default: %(default)s)",
    )
    parser.add_argument("--metrics-port", type=port, metavar="PORT", help="serve metrics for Prometheus there")
    watching.add_arguments(parser)
    parser.set_defaults(command=_run)


def _run(args: argparse.Namespace) -> int:
    files = find_files(args.files)
    # Imported here, because it brings pyspark: no other command should wait for that.
    if len(files) > 1:
        from arroyo_core.cli.run_many import run_many

        return run_many(args, files)
    from arroyo_core.cli.run import run

    (args.file,) = files
    return run(args)


def _fail(error: Exception, *, is_debug: bool) -> int:
    if isinstance(error, JobsFailedError):
        return max(_fail_below(heading, each, is_debug=is_debug) for heading, each in error.failures.items())
    if isinstance(error, InvalidPipelineError):
        for mistake in error.errors:
            print_mistake(mistake, is_debug=is_debug)
        return MISTAKE
    if isinstance(error, PipelineError):
        print_report(render_mistake(error, is_debug=is_debug), sys.stderr)
        return MISTAKE
    if is_debug:
        traceback.print_exception(error)
    if isinstance(error, ArroyoError):
        print_report(f"arroyo: {error}", sys.stderr)
        if is_debug and isinstance(error, OperatorError):
            print(error.traceback, file=sys.stderr)
        return MISTAKE if error_domain(error) is Domain.USER else FAILURE
    name = type(error).__name__
    print_report(f"arroyo: {name}: {error}" + ("" if is_debug else " (more with --debug)"), sys.stderr)
    return FAILURE


def _fail_below(heading: str, error: Exception, *, is_debug: bool) -> int:
    print(f"\n{heading}", file=sys.stderr)
    return _fail(error, is_debug=is_debug)
