"""Checks a query that was made at random: equal to DuckDB's answer, or refused with a place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import duckdb

from .answers import Duck, Rows, difference
from .engine import Broken, Engine, Failed, Outcome, Refused
from .generator import make_query
from .shrinking import shrink
from .syntax import Dialect, Query
from .tables import make_tables

#: Answers with more rows take long, and show no more.
MOST_ROWS = 5_000
#: Of epochs, where there are several: less than any table has.
EPOCH_ROWS = 30


class Verdict(Enum):
    EQUAL = "equal"
    REFUSED = "refused"
    #: DuckDB has no answer, or one that is too large: nothing can be said.
    SKIPPED = "skipped"
    WRONG = "wrong"
    BROKEN = "broken"
    FAILED = "failed"

    @property
    def is_harm(self) -> bool:
        return self in (Verdict.WRONG, Verdict.BROKEN, Verdict.FAILED)


@dataclass(frozen=True, slots=True)
class Checked:
    """What came of a query, and for people why."""

    verdict: Verdict
    text: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """A query that did harm, made as small as it can be."""

    number: int
    verdict: Verdict
    sql: str
    duckdb: str
    text: str


class Checker:
    """Checks queries in one process, over tables in one folder.

    By their numbers they run in one subtask, in two, and in epochs of few rows, each of which restores all state.
    """

    def __init__(self, folder: Path) -> None:
        self._engines = (
            Engine(folder),
            Engine(folder, parallelism=2),
            Engine(folder, parallelism=2, epoch_rows=EPOCH_ROWS),
        )
        self._duck = Duck(make_tables())

    def check(self, query: Query, number: int = 0) -> Checked:
        try:
            expected = self._duck.answer(query.text(Dialect.DUCKDB))
        except duckdb.Error as error:
            return Checked(Verdict.SKIPPED, str(error))
        if sum(expected.count.values()) > MOST_ROWS:
            return Checked(Verdict.SKIPPED, "a large answer")
        return _judge(expected, self._engines[number % len(self._engines)].run(query.text(Dialect.OURS)))

    def find(self, seed: int, number: int) -> Checked | Finding:
        """Check a query, and make it smaller where it does harm."""
        query = make_query(seed, number)
        checked = self.check(query, number)
        if not checked.verdict.is_harm:
            return checked
        smallest = shrink(query, self._does_the_same(checked, number))
        text = self.check(smallest, number).text
        return Finding(number, checked.verdict, smallest.text(Dialect.OURS), smallest.text(Dialect.DUCKDB), text)

    def close(self) -> None:
        self._duck.close()

    def _does_the_same(self, checked: Checked, number: int) -> Callable[[Query], bool]:
        return lambda query: self.check(query, number).verdict is checked.verdict


def _judge(expected: Rows, outcome: Outcome) -> Checked:
    match outcome:
        case Refused():
            return Checked(Verdict.REFUSED, outcome.message)
        case Broken(text):
            return Checked(Verdict.BROKEN, text)
        case Failed(message):
            return Checked(Verdict.FAILED, message)
    found = difference(expected, outcome)
    return Checked(Verdict.EQUAL) if found is None else Checked(Verdict.WRONG, found)
