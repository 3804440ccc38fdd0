"""The entry point of `arroyo`: arguments, dispatch, and the one place where errors become exit codes.

A command is a parser whose default `command` is a function from the arguments to an exit code.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from types import FunctionType

from arroyo_core.api.policy import in_force
from arroyo_core.api.visible import visible
from arroyo_core.cli import plan, plugins, rescale, run_options, state_commands, stop, udf, validate
from arroyo_core.cli.commands import Commands, RootParser
from arroyo_core.cli.confined.policies import is_untrusted, policy_of
from arroyo_core.cli.diagnostics import print_mistake, print_report, render_mistake
from arroyo_core.cli.exits import DAMAGED, FAILURE, INTERRUPTED, MISTAKE, exit_code
from arroyo_core.cli.failures import JobsFailedError
from arroyo_core.cli.log_lines import ERROR, LogFormat, LogLines
from arroyo_core.cli.options import take_query
from arroyo_core.cli.terminal import is_terminal
from arroyo_core.errors import (
    ArroyoError,
    InvalidPipelineError,
    OperatorError,
    PipelineError,
    SetupError,
)
from arroyo_core.plugin import installed_plugins, known_elsewhere
from arroyo_core.state.failures import RemovedStateError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns its exit code; see `exits`."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    # A terminal that cannot show a character is no reason to fail.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    args = parse(arguments)
    try:
        if is_untrusted(args):
            from arroyo_core.cli.confined.start import run_confined

            return run_confined(arguments, args)
    except Exception as error:
        return _fail(error, args)
    return run_command(args)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The arguments of a command, with its function as `command`."""
    parser = _parser(arguments)
    args = parser.parse_args(arguments)
    take_query(args)
    for redirection in parser.redirections:
        args.command = redirection(args) or args.command
    return args


def run_command(args: argparse.Namespace) -> int:
    """Run a command in this process; errors become exit codes."""
    try:
        with in_force(policy_of(args)):
            code: int = args.command(args)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has seen enough. Python flushes once more at exit: give it somewhere to flush to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE
    except KeyboardInterrupt:
        _print_end("interrupted", INTERRUPTED, args)
        return INTERRUPTED
    except Exception as error:
        return _fail(error, args)
    return code


def _parser(arguments: Sequence[str] = ()) -> RootParser:
    """The parser of all commands; of the core's own alone where `arguments` are for one of those.

    To load all plugins takes half a second, which `arroyo stop` need not wait for.
    """
    parser = RootParser(prog="arroyo", description="Stream-processing pipelines in SQL, YAML and Python, on Spark.")
    parser.add_argument("--version", action="version", version=f"arroyo-core {version('arroyo-core')}")
    parser.add_argument("--debug", action="store_true", help="show tracebacks")
    commands = Commands(parser)
    run_options.add_command(commands, _run)
    for module in (validate, plan, stop, rescale, state_commands, plugins, udf):
        module.add_command(commands)
    if not commands.are_complete_for(arguments):
        for _ in installed_plugins().hooks.call_each(
            "arroyo_add_command", within=commands.registering, commands=commands
        ):
            pass
    return parser


def _run(args: argparse.Namespace) -> int:
    if len(args.files) > 1 or Path(args.files[0]).is_dir():
        return _run_several(args)
    # Imported here, because it brings pyspark: no other command should wait for that.
    from arroyo_core.cli.run import run

    (args.file,) = args.files
    return run(args)


def _run_several(args: argparse.Namespace) -> int:
    hooks = installed_plugins().hooks
    run_several = hooks.call_one("arroyo_run_several", FunctionType, what="the run of several pipelines")
    if run_several is None:
        owner = known_elsewhere("runs").get("several")
        hint = f": that is in {owner} (pip install {owner})" if owner else ""
        raise SetupError(f"nothing is installed that runs several pipelines, or a folder of them, in one command{hint}")
    code: int = run_several(args)
    return code


def _fail(error: Exception, args: argparse.Namespace) -> int:
    is_debug: bool = args.debug
    if isinstance(error, JobsFailedError):
        codes = {_fail_below(heading, each, args) for heading, each in error.failures.items()}
        # What a supervisor must know of one job is not true of the others.
        return codes.pop() if len(codes) == 1 else FAILURE
    if isinstance(error, InvalidPipelineError):
        for mistake in error.errors:
            if _log_format(args) is LogFormat.JSON:
                _print_end(str(mistake), MISTAKE, args)
            else:
                print_mistake(mistake, is_debug=is_debug)
        return MISTAKE
    if isinstance(error, PipelineError):
        _print_end(render_mistake(error, is_debug=is_debug), MISTAKE, args)
        return MISTAKE
    if is_debug:
        print(visible("".join(traceback.format_exception(error))), end="", file=sys.stderr)
    code = exit_code(error)
    if isinstance(error, ArroyoError):
        _print_end(f"arroyo: {error}{_advice(error, code)}", code, args)
        if is_debug and isinstance(error, OperatorError):
            print(visible(error.traceback), file=sys.stderr)
        return code
    name = type(error).__name__
    _print_end(f"arroyo: {name}: {error}" + ("" if is_debug else " (more with --debug)"), code, args)
    return code


def _fail_below(heading: str, error: Exception, args: argparse.Namespace) -> int:
    if _log_format(args) is not LogFormat.JSON:
        print(visible(f"\n{heading}"), file=sys.stderr)
    return _fail(error, args)


def _log_format(args: argparse.Namespace) -> LogFormat | None:
    """That of the log of a job; None for other commands than `run`."""
    return LogFormat(args.log_format) if "log_format" in args else None


def _print_end(text: str, code: int, args: argparse.Namespace) -> None:
    """The reason why a command failed; the last line of a job's log, where it has one."""
    kind = _log_format(args)
    # What is a mistake is told before there is a log.
    is_logged = kind is not None and code != MISTAKE and not is_terminal(sys.stderr)
    # Nobody may be reading.
    with contextlib.suppress(BrokenPipeError):
        if kind is LogFormat.JSON or is_logged:
            line = LogLines(kind or LogFormat.TEXT).render(text, level=ERROR, exit_code=code)
            print(line, end="", file=sys.stderr, flush=True)
        else:
            print_report(text, sys.stderr)


def _advice(error: ArroyoError, code: int) -> str:
    # Of state that was removed nothing is left to look at.
    if code != DAMAGED or isinstance(error, RemovedStateError) or "arroyo checkpoints repair" in str(error):
        return ""
    return (
        "\n`arroyo checkpoints verify URL` lists what is damaged, and `arroyo checkpoints repair URL` goes back to the "
        "last checkpoint that is whole"
    )
