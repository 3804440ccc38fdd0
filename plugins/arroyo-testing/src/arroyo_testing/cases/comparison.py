"""How the rows that came differ from those that were expected."""

from __future__ import annotations

import difflib
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from arroyo_testing.cases.cells import Row, narrow_row, row_key, rows_of
from arroyo_testing.cases.compiling import Expected

#: Beyond this many rows on a side, rows that differ are not paired: it would take long, and nobody reads it.
_MAX_PAIRED = 300


class Kind(StrEnum):
    SAME = "same"
    #: Expected, and did not come.
    MISSING = "missing"
    #: Came, and was not expected.
    UNEXPECTED = "unexpected"
    #: One came instead of the other: some cells differ.
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class DiffLine:
    kind: Kind
    expected: Row | None = None
    found: Row | None = None
    #: Which columns differ, where one row came instead of another.
    columns: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """An expectation that was not met."""

    expected: Expected
    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    lines: tuple[DiffLine, ...]
    #: All rows that came, with the columns of `names`.
    found: tuple[Row, ...]

    def count(self, kind: Kind) -> int:
        return sum(line.kind is kind for line in self.lines)


def compare_rows(expected: Expected, table: pa.Table) -> Difference | None:
    """None where the expectation is met."""
    if expected.rows is None:
        if table.num_rows == expected.count:
            return None
        return _all_rows(expected, table, Kind.SAME)
    if not expected.rows:
        return _all_rows(expected, table, Kind.UNEXPECTED) if table.num_rows else None
    chosen = table.select(list(expected.columns))
    found = [narrow_row(row, chosen.schema.types, expected.types) for row in rows_of(chosen)]
    compare = _ordered if expected.is_ordered else _unordered
    lines = compare(expected.rows, found, expected.types)
    if all(line.kind is Kind.SAME for line in lines):
        return None
    return Difference(
        expected=expected, names=expected.columns, types=expected.types, lines=tuple(lines), found=tuple(found)
    )


def _all_rows(expected: Expected, table: pa.Table, kind: Kind) -> Difference:
    rows = rows_of(table)
    return Difference(
        expected=expected,
        names=tuple(table.schema.names),
        types=tuple(table.schema.types),
        lines=tuple(DiffLine(kind, found=row) for row in rows),
        found=tuple(rows),
    )


def _unordered(expected: Sequence[Row], found: Sequence[Row], types: Sequence[pa.DataType]) -> list[DiffLine]:
    """The expected rows in their order, then what came beside them."""
    left = Counter(row_key(row, types) for row in found)
    missing = []
    same = set()
    for place, row in enumerate(expected):
        key = row_key(row, types)
        if left[key]:
            left[key] -= 1
            same.add(place)
        else:
            missing.append(row)
    unexpected = []
    for row in found:
        key = row_key(row, types)
        if left[key]:
            left[key] -= 1
            unexpected.append(row)
    pairs, rest = _pair(missing, unexpected, types)
    partners = iter(pairs)
    lines = []
    for place, row in enumerate(expected):
        if place in same:
            lines.append(DiffLine(Kind.SAME, row, row))
            continue
        partner = next(partners)
        lines.append(DiffLine(Kind.MISSING, row) if partner is None else _changed(row, partner, types))
    return lines + [DiffLine(Kind.UNEXPECTED, found=row) for row in rest]


def _ordered(expected: Sequence[Row], found: Sequence[Row], types: Sequence[pa.DataType]) -> list[DiffLine]:
    left = [row_key(row, types) for row in expected]
    right = [row_key(row, types) for row in found]
    lines = []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag == "equal":
            lines += [DiffLine(Kind.SAME, row, row) for row in found[c:d]]
            continue
        pairs, rest = _pair(expected[a:b], found[c:d], types)
        for row, partner in zip(expected[a:b], pairs, strict=True):
            lines.append(DiffLine(Kind.MISSING, row) if partner is None else _changed(row, partner, types))
        lines += [DiffLine(Kind.UNEXPECTED, found=row) for row in rest]
    return lines


def _changed(expected: Row, found: Row, types: Sequence[pa.DataType]) -> DiffLine:
    left, right = row_key(expected, types), row_key(found, types)
    columns = frozenset(place for place in range(len(types)) if left[place] != right[place])
    return DiffLine(Kind.CHANGED, expected, found, columns)


def _pair(
    missing: Sequence[Row], unexpected: Sequence[Row], types: Sequence[pa.DataType]
) -> tuple[list[Row | None], list[Row]]:
    """For each missing row the one that came instead of it, if any does; and the rows left over.

    Rows belong together that have at least half of their cells in common, those with most of them first.
    """
    partners: list[Row | None] = [None] * len(missing)
    if not missing or not unexpected or max(len(missing), len(unexpected)) > _MAX_PAIRED:
        return partners, list(unexpected)
    left = [row_key(row, types) for row in missing]
    right = [row_key(row, types) for row in unexpected]
    by_score: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for i, one in enumerate(left):
        for j, other in enumerate(right):
            score = sum(a == b for a, b in zip(one, other, strict=True))
            if score and 2 * score >= len(types):
                by_score[score].append((i, j))
    taken: set[int] = set()
    for score in sorted(by_score, reverse=True):
        for i, j in by_score[score]:
            if partners[i] is None and j not in taken:
                partners[i] = unexpected[j]
                taken.add(j)
    return partners, [row for j, row in enumerate(unexpected) if j not in taken]
