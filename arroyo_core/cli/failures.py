"""What goes wrong with several pipelines of one command."""

from __future__ import annotations

from collections.abc import Mapping

from arroyo_core.errors import ArroyoError


class JobsFailedError(ArroyoError):
    """What each of several files or jobs failed with, by what to say above it."""

    def __init__(self, failures: Mapping[str, Exception]) -> None:
        super().__init__("; ".join(f"{heading} {error}" for heading, error in failures.items()))
        self.failures = dict(failures)
