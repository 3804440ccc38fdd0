"""What only rows in time have: values of the rows before and behind, and rows that are near each other in time."""

from __future__ import annotations

import random
from collections.abc import Sequence

from .expressions import Expressions
from .syntax import Expr, Type

INT, FLOAT, DECIMAL, TEXT, BOOL, TIME = Type

#: The column of event times of each table that is a stream in time, and what tells rows of one time apart.
TIMES = {"orders": "placed", "payments": "paid_at", "events": "happened"}
UNIQUE = {"orders": "id", "payments": "payment", "events": "e"}
_DEFAULTS = {INT: "0", TEXT: "'none'", FLOAT: "0.5"}
#: Of an order, behind the time.
_DIRECTIONS = ("", " DESC", " NULLS FIRST", " DESC NULLS LAST")


def neighbor(chance: random.Random, expressions: Expressions, partition: Sequence[Expr], order: str) -> Expr:
    """`lag()` or `lead()` over rows in an order of which no two are equal."""
    kind = chance.choice([INT, TEXT, *expressions.types()])
    value = expressions.of(kind, chance.choice((0, 0, 1)))
    offset = chance.choice(("", "", ", 1", ", 2", ", 4"))
    if offset and kind in _DEFAULTS and chance.random() < 0.5:
        offset += f", {_DEFAULTS[kind]}"
    by = f"PARTITION BY {', '.join(f'{{{index}}}' for index in range(1, len(partition) + 1))} " if partition else ""
    template = f"{chance.choice(('lag', 'lead'))}({{0}}{offset}) OVER ({by}ORDER BY {order})"
    return Expr(kind, template, (value, *partition))


def order_of(chance: random.Random, table: str, alias: str, others: Sequence[Expr]) -> str:
    """An order of the rows of a table by their event time, in which no two are equal."""
    keys = [f"{alias}.{TIMES[table]}"]
    if others and chance.random() < 0.3:
        keys.append(f"{chance.choice(others).template}{chance.choice(_DIRECTIONS)}")
    keys.append(f"{alias}.{UNIQUE[table]}{chance.choice(('', ' DESC'))}")
    return ", ".join(keys)


def near(chance: random.Random, left: Expr, right: Expr) -> Expr:
    """Whether two times are no further apart than some seconds, in one of the forms of it."""
    before, behind = chance.choice((0, 2, 5, 30)), chance.choice((0, 1, 4, 20))
    if chance.random() < 0.5:
        left, right = right, left
    low, high = f"{{0}} - INTERVAL '{before} seconds'", f"{{0}} + INTERVAL '{behind} seconds'"
    if chance.random() < 0.5:
        return Expr(BOOL, f"({{1}} BETWEEN {low} AND {high})", (left, right))
    operators = chance.choice(((">", "<"), (">=", "<"), (">", "<="), (">=", "<=")))
    return Expr(BOOL, f"({{1}} {operators[0]} {low} AND {{1}} {operators[1]} {high})", (left, right))
