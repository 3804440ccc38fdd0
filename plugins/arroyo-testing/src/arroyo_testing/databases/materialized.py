"""What becomes of the changes of a table, and whatever is wrong with them."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from arroyo_core.api.updating import UPDATING_META


def sort(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """In an order that nulls have a place in."""
    return sorted(rows, key=lambda row: tuple((value is not None, value) for value in row))


class Materialized:
    """What is there after all changes, and whatever is wrong with them."""

    def __init__(self) -> None:
        self._rows: Counter[tuple[Any, ...]] = Counter()
        self.mistakes: list[str] = []
        self.count = 0

    def add(self, table: pa.Table | Iterable[pa.RecordBatch]) -> None:
        """Apply changes in order."""
        found = table if isinstance(table, pa.Table) else pa.Table.from_batches(list(table))
        for row in found.to_pylist():
            self.count += 1
            meta = row.pop(UPDATING_META, None)
            is_retract = meta is not None and meta["is_retract"]
            self.change(row if is_retract else None, None if is_retract else row)

    def change(self, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> None:
        """Take a row back, add one, or both."""
        if before is not None:
            values = tuple(before.values())
            if not self._rows[values]:
                self.mistakes.append(f"took back {values}, which is not there")
            self._rows[values] -= 1
        if after is not None:
            self._rows[tuple(after.values())] += 1

    def rows(self) -> list[tuple[Any, ...]]:
        found = list(itertools.chain.from_iterable([row] * count for row, count in self._rows.items()))
        return sort(found)

    def check(self, expected: Sequence[tuple[Any, ...]]) -> None:
        """All that is there, once, and nothing else."""
        assert self.mistakes == []
        assert self.rows() == sort(expected)


def kinds(table: pa.Table) -> list[tuple[str, Mapping[str, Any]]]:
    """The changes in order, `+` and `-`, with their rows."""
    found = []
    for row in table.to_pylist():
        meta = row.pop(UPDATING_META)
        found.append(("-" if meta["is_retract"] else "+", row))
    return found
