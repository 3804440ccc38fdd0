"""Runs a command in a process of its own, and reports for it where it cannot."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from arroyo_core.api.limits import LIMITS, PREFIX, UNTRUSTED_MEMORY, UNTRUSTED_SECONDS
from arroyo_core.api.policy import ROOTS_VARIABLE
from arroyo_core.api.visible import visible
from arroyo_core.cli.confined.policies import UNTRUSTED_VARIABLE, planned_files, seconds_for
from arroyo_core.cli.diagnostics import mistake_json
from arroyo_core.cli.exits import MISTAKE
from arroyo_core.cli.options import JSON, write_output
from arroyo_core.errors import InvalidPipelineError, PipelineError, SetupError

#: What Python, its libraries and terminals need. Pipelines cannot read these either.
_KEPT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "PYTHONWARNINGS",
         "COLUMNS", ROOTS_VARIABLE, UNTRUSTED_VARIABLE)  # fmt: skip
#: The options that reach out to where checkpoints are.
_REFUSED = {"against": "--against", "checkpoint": "--checkpoint"}


def run_confined(arguments: Sequence[str], args: argparse.Namespace) -> int:
    """The exit code of the command. Raises `InvalidPipelineError` where it did not come to an end by itself."""
    for name, option in _REFUSED.items():
        if getattr(args, name, None) is not None:
            raise SetupError(f"{option} reads checkpoints, which untrusted mode does not: leave one of the two away")
    files = planned_files(args)
    seconds = seconds_for(args)
    # Files, and not pipes: their size is limited.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        code = _run(arguments, args, seconds=seconds, out=out, errors=errors)
        problem = _problem(code, seconds)
        if code is not None and problem is None:
            _give(errors, sys.stderr)
            if getattr(args, "output", None) is not None and code == 0:
                out.seek(0)
                write_output(out.read(), args.output)
            else:
                _give(out, sys.stdout)
            return code
    error = PipelineError(f"{', '.join(files)}: {problem}", value=files[0])
    if "files" in args and args.format == JSON:
        print(json.dumps([mistake_json(error)], indent=2))
        return MISTAKE
    raise InvalidPipelineError([error])


def _run(
    arguments: Sequence[str], args: argparse.Namespace, *, seconds: int, out: IO[bytes], errors: IO[bytes]
) -> int | None:
    """The exit code; None where the process was ended because it took too long."""
    # -P: no module is taken from the working directory, which may be the author's.
    command = [sys.executable, "-P", "-m", "arroyo_core.cli.confined", *arguments]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=errors,
        env=_environment(args.variables),
    )
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.wait()


def _environment(allowed: Sequence[str]) -> dict[str, str]:
    names = {*_KEPT, *allowed, *(limit.variable for limit in LIMITS)}
    kept = {name: value for name, value in os.environ.items() if name in names or name.startswith(PREFIX)}
    # An empty or a relative entry is a folder that may be the author's.
    path = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if Path(each).is_absolute()]
    return {**kept, "PYTHONPATH": os.pathsep.join(path)} if path else kept


def _problem(code: int | None, seconds: int) -> str | None:
    if code is None or code == -signal.SIGXCPU:
        return f"planning did not end in {seconds} s: {UNTRUSTED_SECONDS.hint}"
    if code < 0:
        name = signal.Signals(-code).name
        return f"planning crashed with {name}, as it does where memory or stack end: {UNTRUSTED_MEMORY.hint}"
    return None


def _give(source: IO[bytes], target: IO[str]) -> None:
    source.seek(0)
    target.flush()
    binary = getattr(target, "buffer", None)
    if binary is None or target.isatty():
        text = source.read().decode(errors="replace")
        target.write(visible(text) if target.isatty() else text)
        return
    shutil.copyfileobj(source, binary)
    binary.flush()
