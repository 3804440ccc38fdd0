"""Collects every mistake of a pipeline file, so that a person can fix them in one go."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from arroyo_core.errors import InvalidPipelineError, Location, PipelineError


class Mistakes:
    """The mistakes found so far. One place gets one message only once, however often it is visited."""

    def __init__(self) -> None:
        self._errors: dict[tuple[Location | None, str], PipelineError] = {}
        #: Files and lines that must not be repeated.
        self._hidden_lines: set[tuple[str, int]] = set()

    def __bool__(self) -> bool:
        return bool(self._errors)

    def add(
        self,
        message: str,
        *,
        at: Location | None,
        value: object = None,
        allowed: Sequence[str] = (),
        suggestion: str | None = None,
        details: str | None = None,
        code: str | None = None,
    ) -> None:
        """Record a mistake; `details` are for the plugin's author and shown on demand only."""
        error = PipelineError(message, at=at, value=value, allowed=allowed, suggestion=suggestion, code=code)
        if details:
            error.add_note(details)
        self._errors.setdefault((at, message), error)

    def add_unknown(self, message: str, *, at: Location | None, name: str, choices: Iterable[str]) -> None:
        """Record a name that is none of `choices`, with the nearest of them."""
        known = tuple(choices)
        self.add(message, at=at, value=name, allowed=known, suggestion=nearest(name, known))

    def hide_line(self, at: Location) -> None:
        """The line has a secret: no mistake in it shows it, whenever that was found."""
        self._hidden_lines.add((at.file, at.line))

    def extend(self, others: Mistakes) -> None:
        for key, error in others._errors.items():
            self._errors.setdefault(key, error)

    def sorted(self) -> list[PipelineError]:
        """By file and place; what has no place comes first."""
        for error in self._errors.values():
            error.shows_line = error.at is None or (error.at.file, error.at.line) not in self._hidden_lines
        return sorted(
            self._errors.values(),
            key=lambda error: (error.at.file, error.at.line, error.at.column) if error.at else ("", 0, 0),
        )

    def raise_if_any(self) -> None:
        if self._errors:
            raise InvalidPipelineError(self.sorted())


def nearest(name: str, choices: Iterable[str]) -> str | None:
    """The choice that `name` was probably meant to be, None where nothing is near."""
    by_folded = {choice.casefold(): choice for choice in choices}
    found = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.6)
    return by_folded[found[0]] if found else None
