"""What a check found, and how to fix it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    #: Pipelines run, but slower, or not for long.
    WARNING = "warning"
    #: Pipelines do not run, or their results cannot be trusted.
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of `arroyo doctor`; `fix` says what to do, and is empty where all is well."""

    check: str
    level: Level
    message: str
    fix: str = ""


def ok(check: str, message: str) -> Finding:
    return Finding(check, Level.OK, message)


def warning(check: str, message: str, fix: str) -> Finding:
    return Finding(check, Level.WARNING, message, fix)


def failed(check: str, message: str, fix: str) -> Finding:
    return Finding(check, Level.FAILED, message, fix)


#: Looks at one thing, and gives a finding for each of its parts.
Check = Callable[[], Iterable[Finding]]


def run_checks(checks: Iterable[tuple[str, Check]]) -> Iterator[Finding]:
    """The findings of each check in turn; one that breaks is a finding too, and the others still run."""
    for name, check in checks:
        try:
            yield from check()
        except Exception as error:
            yield failed(name, f"the check broke off: {type(error).__name__}: {error}", "more with --debug")
