"""Rows in a form in which they are compared: what DuckDB says, what came here, and how these differ."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa

#: As many digits of a floating number as must agree: the last ones depend on the order of additions.
_DIGITS = 9

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Rows:
    """A multiset of rows, and the names of their columns."""

    names: tuple[str, ...]
    count: Mapping[Row, int]


class Duck:
    """DuckDB with the tables, and with the meanings that DataFusion has where there are several."""

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        self._connection = duckdb.connect()
        # Whole numbers are divided to whole numbers; null is the largest value.
        self._connection.execute("SET integer_division = true")
        self._connection.execute("SET default_null_order = 'nulls_last_on_asc_first_on_desc'")
        self._connection.execute("SET threads = 1")
        for name, table in tables.items():
            self._connection.register(f"given_{name}", _without_zones(table))
            self._connection.execute(f"CREATE TABLE {name} AS FROM given_{name}")

    def answer(self, query: str) -> Rows:
        """The rows of a query; raises `duckdb.Error`."""
        return rows_of([(self._connection.sql(query).to_arrow_table(), 1)])

    def close(self) -> None:
        self._connection.close()


def rows_of(parts: Iterable[tuple[pa.Table, int]]) -> Rows:
    """All rows that are left of those that were added (1) and taken back (-1)."""
    names: tuple[str, ...] = ()
    count: Counter[Row] = Counter()
    for table, sign in parts:
        names = tuple(table.schema.names)
        columns = [[plain(value) for value in _values(column)] for column in table.columns]
        for row in zip(*columns, strict=True):
            count[row] += sign
    return Rows(names, {row: times for row, times in count.items() if times})


def plain(value: Any) -> Any:
    """A value such that equal ones are equal, whatever their types: numbers are numbers."""
    match value:
        case None | bool() | str() | int() | bytes():
            return value
        case float():
            return _number(value)
        case Decimal():
            return int(value) if value == value.to_integral_value() else _number(float(value))
        case dt.datetime():
            return value.replace(tzinfo=None)
        case dict():
            return tuple(plain(each) for each in value.values())
        case list() | tuple():
            return tuple(plain(each) for each in value)
        case _:
            return value


def difference(expected: Rows, found: Rows) -> str | None:
    """What is missing and what is too much, for people; None where there is nothing."""
    if len(expected.names) != len(found.names):
        return f"{len(found.names)} columns ({', '.join(found.names)}), not {len(expected.names)}"
    for wanted, name in zip(expected.names, found.names, strict=True):
        # DuckDB has names of its own for what has none.
        if wanted.isidentifier() and wanted != name:
            return f"a column is named {name!r}, not {wanted!r}"
    missing = Counter(expected.count)
    missing.subtract(found.count)
    lines = [f"{'missing' if times > 0 else 'too much'}: {row}" for row, times in missing.items() if times]
    if not lines or _is_close(missing):
        return None
    shown = "\n".join(sorted(lines, key=repr)[:12])
    return f"{sum(map(abs, missing.values()))} rows differ of {sum(expected.count.values())}\n{shown}"


def _is_close(missing: Mapping[Row, int]) -> bool:
    """Whether only last digits differ: rounding may fall to either side."""
    lacking = sorted((row for row, times in missing.items() if times > 0 for _ in range(times)), key=repr)
    surplus = sorted((row for row, times in missing.items() if times < 0 for _ in range(-times)), key=repr)
    if len(lacking) != len(surplus):
        return False
    return all(_are_close(one, other) for one, other in zip(lacking, surplus, strict=True))


def _are_close(one: Any, other: Any) -> bool:
    if isinstance(one, int) and isinstance(other, int):
        return one == other
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(_are_close(a, b) for a, b in zip(one, other, strict=True))
    if (isinstance(one, float) and isinstance(other, float | int)) or (
        isinstance(other, float) and isinstance(one, int)
    ):
        return math.isclose(one, other, rel_tol=10 ** (1 - _DIGITS))
    return bool(one == other)


def _number(value: float) -> Any:
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return value
    # Negative zero is zero.
    return int(value) if value == int(value) else float(f"{value:.{_DIGITS}g}")


def _values(column: pa.ChunkedArray) -> Sequence[Any]:
    kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", kind.tz), safe=False)
    return list(column.to_pylist())


def _without_zones(table: pa.Table) -> pa.Table:
    fields = [pa.field(f.name, pa.timestamp("us")) if pa.types.is_timestamp(f.type) else f for f in table.schema]
    return table.cast(pa.schema(fields))
