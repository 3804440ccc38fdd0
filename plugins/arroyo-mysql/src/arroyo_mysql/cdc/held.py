"""Rows of a binlog. Those of the transaction that it is in are held until it is complete: it may take them back.

Pure.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from arroyo_mysql.cdc.places import Transaction

_SAVEPOINT = re.compile(
    r"(SAVEPOINT|ROLLBACK(?:\s+WORK)?\s+TO(?:\s+SAVEPOINT)?|RELEASE\s+SAVEPOINT)\s+(.+)", re.IGNORECASE | re.DOTALL
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Rows that came together. Of each the values of the columns that are read, and then of the key."""

    rows: list[tuple[Any, ...]]
    is_retract: npt.NDArray[np.bool_]
    transactions: list[Transaction]

    def take(self, places: npt.NDArray[np.int64]) -> Block:
        chosen = places.tolist()
        return Block(
            rows=[self.rows[place] for place in chosen],
            is_retract=self.is_retract[places],
            transactions=[self.transactions[place] for place in chosen],
        )


@dataclass(slots=True)
class _Part:
    """What is left of the rows of one event; `first` is the number of the first one in the transaction, from 1."""

    first: int
    kind: int
    #: How many rows of the result each makes: 2 of an update, 0 where it is left out.
    each: int
    rows: Sequence[Any]
    #: The bytes of the event.
    size: int


class HeldRows:
    """Those that are not given yet. All rows of the table have numbers, also those that are taken back."""

    def __init__(self, given: int = 0) -> None:
        """Of the transaction the first rows, up to this number, were given before."""
        #: The number of the last row that was given.
        self.given = given
        #: How many rows of the result are held, and about how many bytes.
        self.count = self.size = 0
        self._before = given
        self._came = 0
        self._parts: deque[_Part] = deque()
        self._savepoints: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._parts)

    @property
    def lacks(self) -> int:
        """How many rows were given before, and have not come again."""
        return max(0, self._before - self._came)

    def add(self, kind: int, rows: Sequence[Any], *, each: int, size: int) -> None:
        """Rows of an event, or pairs of them; those that were given before are left out."""
        first = self._came + 1
        self._came += len(rows)
        skipped = min(len(rows), max(0, self._before - first + 1))
        if skipped < len(rows):
            self._parts.append(_Part(first + skipped, kind, each, rows[skipped:], size))
            self.count += (len(rows) - skipped) * each
            self.size += size

    def take(self, limit: int) -> Iterator[tuple[int, int, Sequence[Any]]]:
        """About so many rows of the result, in their order, with their kind and what each makes; they are given."""
        while self._parts and limit > 0:
            part = self._parts[0]
            count = max(1, limit // part.each) if part.each else len(part.rows)
            taken, part.rows = part.rows[:count], part.rows[count:]
            part.first += len(taken)
            self.given = part.first - 1
            limit -= part.each * len(taken)
            self.count -= part.each * len(taken)
            if not part.rows:
                self._parts.popleft()
                self.size -= part.size
            yield part.kind, part.each, taken

    def heed_savepoint(self, statement: str) -> bool:
        """What a statement about a savepoint does; False where it takes back rows that were given, or nobody knows."""
        found = _SAVEPOINT.fullmatch(statement)
        if found is None:
            return True
        what, name = found[1].upper(), _folded(found[2])
        if what == "SAVEPOINT":
            self._savepoints[name] = self._came
            return True
        if what.startswith("RELEASE"):
            return True
        if self._came == 0:
            return True
        return name in self._savepoints and self._take_back(self._savepoints[name])

    def take_back(self) -> bool:
        """All of the transaction; False where rows of it were given."""
        return self._take_back(0)

    def _take_back(self, kept: int) -> bool:
        # What was given before was not taken back before it was all there: as long as it comes again nothing is wrong.
        if kept < self.given <= self._came:
            return False
        for part in self._parts:
            part.rows = part.rows[: max(0, kept - part.first + 1)]
        self._parts = deque(part for part in self._parts if part.rows)
        self.count = sum(len(part.rows) * part.each for part in self._parts)
        self.size = sum(part.size for part in self._parts)
        return True


def _folded(name: str) -> str:
    name = name.strip()
    if len(name) > 1 and name[0] == name[-1] == "`":
        name = name[1:-1].replace("``", "`")
    return name.lower()
