"""How long planning one file may take, in untrusted mode."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from arroyo_core.api.limits import UNTRUSTED_MEMORY, UNTRUSTED_SECONDS
from arroyo_core.api.policy import current_policy
from arroyo_core.errors import InvalidPipelineError, OutOfTimeError, PipelineError


@contextmanager
def planning_time(file: str) -> Iterator[None]:
    """What is inside has some seconds; raises `InvalidPipelineError` after them, and where it takes too much memory.

    Without untrusted mode it has all the time. Only in the main thread. Code of a library that does not come back is
    ended by the process that waits for this one.
    """
    if not current_policy().is_untrusted:
        yield
        return
    former = signal.signal(signal.SIGALRM, _end)
    signal.setitimer(signal.ITIMER_REAL, UNTRUSTED_SECONDS.value)
    try:
        yield
    except OutOfTimeError as error:
        raise _mistake(f"planning {file} took too long: {UNTRUSTED_SECONDS.hint}", file) from error
    except MemoryError as error:
        raise _mistake(f"planning {file} took too much memory: {UNTRUSTED_MEMORY.hint}", file) from error
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)


def _end(signum: int, frame: object) -> NoReturn:
    raise OutOfTimeError


def _mistake(message: str, file: str) -> InvalidPipelineError:
    return InvalidPipelineError([PipelineError(message, value=file)])
