"""What a check raises: the rule that is broken, what showed it, and how to fix it."""

from __future__ import annotations

from arroyo_core.errors import OperatorError

#: Where the rules are explained.
GUIDE = "docs/write-a-plugin.md"
SINK_GUIDE = "docs/write-a-sink.md"


class ConformanceError(AssertionError):
    """A rule that a plugin breaks. The message names the fault and how to fix it; `details` is a traceback, if any."""

    def __init__(self, message: str, *, details: str = "") -> None:
        super().__init__(message)
        self.details = details


class NotApplicable(Exception):  # noqa: N818 - an answer, not an error
    """The rule does not concern what is checked; the message says why."""


def failure_of(name: str, doing: str, error: BaseException) -> ConformanceError:
    """An operator raised where it should not have."""
    details = error.traceback if isinstance(error, OperatorError) else ""
    said = error.message if isinstance(error, OperatorError) else f"{type(error).__name__}: {error}"
    return ConformanceError(f"{name} fails {doing}: {said}", details=details)


def shown(value: object, limit: int = 200) -> str:
    """A value in a message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 3]}..."
