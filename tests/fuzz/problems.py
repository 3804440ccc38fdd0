"""Whether an input does harm."""

from __future__ import annotations

import hashlib
import traceback
import warnings
from dataclasses import dataclass

from arroyo_core.errors import ArroyoError

from .targets import ROOT, Run


@dataclass(frozen=True, slots=True)
class Problem:
    """An error that no reader may raise."""

    #: Its class, and where it was raised: of inputs with the same one finds the same fault.
    kind: str
    place: str
    text: str

    @property
    def id(self) -> str:
        # Broken promises of a target may all be seen in one line.
        what = self.text.rstrip().rpartition("\n")[2][:60] if self.kind == AssertionError.__name__ else ""
        return hashlib.sha256(f"{self.kind} {self.place} {what}".encode()).hexdigest()[:12]

    def __str__(self) -> str:
        return f"{self.kind} in {self.place}"


def find_problem(run: Run, data: bytes) -> Problem | None:
    """What an input came to; None for nothing, and for an error of ours. Crashes and hangs are seen outside."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run(data)
    except ArroyoError:
        return None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # Panics of native libraries are no exceptions of Python's usual kind.
        return Problem(type(error).__name__, _place(error), "".join(traceback.format_exception(error)))
    return None


def _place(error: BaseException) -> str:
    """The innermost line of the repository; a target's own where a promise is broken."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename.startswith(str(ROOT)) and "/.venv/" not in frame.filename]
    last = (own or frames)[-1]
    return f"{last.filename.removeprefix(f'{ROOT}/')}:{last.lineno}"
