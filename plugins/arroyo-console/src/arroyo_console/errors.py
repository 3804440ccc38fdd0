"""What the console refuses, with what is wrong, where, and what is allowed."""

from __future__ import annotations

from collections.abc import Sequence

from arroyo_console.values import Problem


class ConsoleError(Exception):
    """Raised by `Console` for a request that cannot be met; the API answers with `status`."""

    status = 400

    def __init__(
        self,
        message: str,
        *,
        where: str | None = None,
        allowed: Sequence[str] = (),
        problems: Sequence[Problem] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        #: The field or the parameter that is meant.
        self.where = where
        self.allowed = tuple(allowed)
        #: Mistakes in a text.
        self.problems = tuple(problems)


class InvalidTextError(ConsoleError):
    """A text is not a pipeline that could run; `problems` say why."""

    status = 422


class UnknownError(ConsoleError):
    """There is nothing of this id."""

    status = 404


class ConflictError(ConsoleError):
    """It cannot be done in the state that something is in."""

    status = 409


class ReadOnlyError(ConsoleError):
    """Another server supervises the jobs of this database, or who asks may only read."""

    status = 403


class TooManyError(ConsoleError):
    """The server does as many of these as it may at a time."""

    status = 429
