"""Sides that take turns, and what their rows come to: answers are checked before times are printed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.api.updating import IS_RETRACT, UPDATING_META

#: Where the number and the total are in a row of `orders`, whoever reads it.
ID, TOTAL = 0, 7
#: Of a block of changes: so many rows are added, then changed, then deleted, each in a transaction of its own.
INSERTS, UPDATES, DELETES = 500, 300, 200
BLOCK, TRANSACTIONS = INSERTS + UPDATES + DELETES, 3
#: Rows that were added, and rows that were taken back.
Rows: TypeAlias = tuple[list[Any], list[Any]]


@dataclass(frozen=True, slots=True)
class Answer:
    """How many rows were added and taken back, and the sums of those that stay."""

    added: int
    taken_back: int
    ids: int
    total: Decimal


@dataclass(frozen=True, slots=True)
class Side:
    """One way to read; only `run` is timed."""

    name: str
    run: Callable[[], Any]
    answer: Callable[[Any], object]
    expected: object
    #: What has to be waited for before.
    ready: Callable[[], object] = bool


def take_turns(title: str, unit: str, rows: int, sides: Sequence[Side], *, beside: str, rounds: int) -> None:
    """Print how fast each is at its best, and how fast beside the one of this name."""
    best: dict[str, float] = {}
    for _ in range(rounds):
        for side in sides:
            side.ready()
            start = time.perf_counter()
            read = side.run()
            seconds = time.perf_counter() - start
            found = side.answer(read)
            assert found == side.expected, f"{title}, {side.name}: {found} is not {side.expected}"
            best[side.name] = min(best.get(side.name, seconds), seconds)
    print(f"{title}: {rows:,}, beside {beside!r}")
    for name, seconds in best.items():
        speed, ratio = rows / seconds / 1000, best[beside] / seconds
        print(f"  {name:44} {speed:7.0f} k {unit}/s  {ratio:5.2f}", flush=True)


def of_rows(rows: Rows) -> Answer:
    """Of tuples, whose values are texts or not."""
    added, taken_back = rows
    ids = sum(int(row[ID]) for row in added) - sum(int(row[ID]) for row in taken_back)
    total = _total(row[TOTAL] for row in added) - _total(row[TOTAL] for row in taken_back)
    return Answer(len(added), len(taken_back), ids, total)


def of_table(table: pa.Table) -> Answer:
    """Of an updating stream, or of one that only adds."""
    if UPDATING_META not in table.column_names:
        return Answer(table.num_rows, 0, *_sums(table))
    is_retract = pc.struct_field(table.column(UPDATING_META), IS_RETRACT)
    added, taken_back = table.filter(pc.invert(is_retract)), table.filter(is_retract)
    (ids, total), (less_ids, less_total) = _sums(added), _sums(taken_back)
    return Answer(added.num_rows, taken_back.num_rows, ids - less_ids, total - less_total)


def blocks_of(changes: int) -> int:
    """How many blocks hold at least so many changes."""
    return max(1, -(-changes // BLOCK))


def _sums(table: pa.Table) -> tuple[int, Decimal]:
    return pc.sum(table.column("id")).as_py() or 0, pc.sum(table.column("total")).as_py() or Decimal()


def _total(values: Iterable[Any]) -> Decimal:
    return sum((Decimal(value) for value in values), Decimal())
