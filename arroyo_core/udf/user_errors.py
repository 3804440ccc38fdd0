"""What is said of user code that failed: whose it is, with which arguments, and where in the user's own frames."""

from __future__ import annotations

import os
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from arroyo_core.errors import UdfError
from arroyo_core.udf.user_function import UserFunction

#: Set to 1 to keep values of rows out of errors, and so out of logs.
REDACT = "ARROYO_REDACT_SAMPLES"
MAX_SAMPLE = 200

_HERE = str(Path(__file__).parent)


def failure(udf: UserFunction, message: str, *, sample: str = "", trace: str = "") -> UdfError:
    """A `UdfError` that says whose function it is."""
    source = str(udf.source) if udf.source else ""
    return UdfError(message, udf=udf.name, source=source, sample=sample, traceback=trace)


def raised(udf: UserFunction, error: BaseException, *, sample: str = "") -> UdfError:
    """The `UdfError` for an exception of the user's code, also for one that would end the process."""
    if isinstance(error, UdfError):
        return error
    return failure(udf, reason(error), sample=sample, trace=_trace(error))


def show_row(names: Sequence[str], values: Sequence[object]) -> str:
    """The arguments of one call, each cut to a short text; without values where these are to be kept secret."""
    return ", ".join(f"{name}={show_value(value)}" for name, value in zip(names, values, strict=False))


def show_value(value: object) -> str:
    """A value for an error, cut to a short text; hidden where values are to be kept secret."""
    if _is_redacted():
        return "(hidden)"
    try:
        text = repr(value)
    except Exception as error:
        text = f"(a {type(value).__name__} whose repr fails with {type(error).__name__})"
    return text if len(text) <= MAX_SAMPLE else f"{text[:MAX_SAMPLE]}..."


def user_frames(trace: TracebackType | None) -> TracebackType | None:
    """The traceback from the first frame on that is not of this package."""
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_HERE):
        trace = trace.tb_next
    return trace


def _trace(error: BaseException) -> str:
    described = traceback.TracebackException(type(error), error, user_frames(error.__traceback__))
    if not _is_redacted():
        return "".join(described.format()).rstrip()
    # The last line, and causes, may quote the row.
    return f"Traceback (most recent call last):\n{''.join(described.stack.format())}{type(error).__name__}"


def reason(error: BaseException) -> str:
    """What is said of an exception of the user's code."""
    if isinstance(error, SystemExit):
        return f"it called sys.exit({'' if error.code is None else error.code})"
    text = "" if _is_redacted() else str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _is_redacted() -> bool:
    return os.environ.get(REDACT) == "1"
