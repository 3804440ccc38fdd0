"""What the rows of a batch do to the rows that a table holds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Insert:
    """Each row is added."""


@dataclass(frozen=True, slots=True)
class DeleteTimeKey:
    """Rows with the key and the event time of a row of the batch go."""


@dataclass(frozen=True, slots=True)
class DeleteKey:
    """Rows with the key of a row of the batch go."""


@dataclass(frozen=True, slots=True)
class DeleteValue:
    """Rows equal in every column to a row of the batch go."""


@dataclass(frozen=True, slots=True)
class DeleteTimeRange:
    """Rows with the key of a row of the batch and an event time in `start_us..end_us` (inclusive) go."""

    start_us: int
    end_us: int


#: What the rows of a batch do to those before them.
DataOperation = Insert | DeleteTimeKey | DeleteKey | DeleteValue | DeleteTimeRange
