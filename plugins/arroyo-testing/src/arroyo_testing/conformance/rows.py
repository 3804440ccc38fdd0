"""Compares what came out of two runs, whatever the order, and says how they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from arroyo_core.api.updating import IS_RETRACT, UPDATING_META
from arroyo_testing.conformance.faults import shown

#: Sums of floats depend on the order of the additions in their last digits.
_FLOAT_DIGITS = ".9g"

Row = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Outcome:
    """The rows of a run: of the main output (None as a name) and of side outputs, each with how often it came.

    A row that was taken back counts as if it had never come.
    """

    rows: dict[str | None, Counter[Row]] = field(default_factory=dict)
    order: list[Row] = field(default_factory=list)

    def add(self, output: str | None, table: pa.Table, *, ignore: Collection[str] = ()) -> None:
        counted = self.rows.setdefault(output, Counter())
        for record in table.to_pylist():
            sign = -1 if (record.pop(UPDATING_META, None) or {}).get(IS_RETRACT) else 1
            row = freeze(record, ignore)
            counted[row] += sign
            if output is None:
                self.order.append(row)
        for row in [row for row, count in counted.items() if count == 0]:
            del counted[row]

    def keep_latest(self, keys: Collection[str], removed_by: str = "") -> None:
        """Of the rows of the main output with equal keys only the last, unless it is true in `removed_by`."""
        latest = {tuple(cell for cell in row if cell[0] in keys): row for row in self.order}
        self.order = [row for row in latest.values() if (removed_by, _text(True)) not in row]
        self.rows[None] = Counter(self.order)

    @property
    def row_count(self) -> int:
        return sum(abs(count) for counted in self.rows.values() for count in counted.values())


def outcome_of(table: pa.Table | pa.RecordBatch, *, ignore: Collection[str] = ()) -> Outcome:
    outcome = Outcome()
    outcome.add(None, table, ignore=ignore)
    return outcome


def freeze(record: Mapping[str, Any], ignore: Collection[str] = ()) -> Row:
    """A row as a value that can be counted; floats are equal if their first nine digits are."""
    return tuple((name, _text(value)) for name, value in record.items() if name not in ignore)


def difference(expected: Outcome, got: Outcome, *, is_ordered: bool = False) -> str | None:
    """How two runs differ, in a sentence; None if they do not."""
    for output in expected.rows.keys() | got.rows.keys():
        found = _counted_difference(expected.rows.get(output, Counter()), got.rows.get(output, Counter()))
        if found is not None:
            return found if output is None else f"in the side output {output!r}, {found}"
    if is_ordered and expected.order != got.order:
        place = next(i for i, (left, right) in enumerate(zip(expected.order, got.order, strict=False)) if left != right)
        return f"row {place + 1} is {_shown(got.order[place])}, expected {_shown(expected.order[place])}"
    return None


def _counted_difference(expected: Counter[Row], got: Counter[Row]) -> str | None:
    missing, extra = _less(expected, got), _less(got, expected)
    if not missing and not extra:
        return None
    if missing and extra:
        left, right = _nearest_pair(missing, extra)
        changed = [(name, value, dict(right).get(name)) for name, value in left if dict(right).get(name) != value]
        if len(changed) == 1 and len(left) == len(right):
            name, wanted, found = changed[0]
            rest = ", ".join(f"{key}: {value}" for key, value in left if key != name)
            return f"{name!r} was expected to be {wanted}, got {found}" + (
                f" (in the row {rest[:200]})" if rest else ""
            )
        return f"expected the row {_shown(left)}, got {_shown(right)}"
    if missing:
        return f"{_rows(missing)} missing, such as {_shown(next(iter(missing)))}"
    return f"{_rows(extra)} too many, such as {_shown(next(iter(extra)))}"


def _less(left: Counter[Row], right: Counter[Row]) -> Counter[Row]:
    """What `left` has more of than `right`; counts below zero, of rows taken back before they came, count too."""
    return Counter({row: count - right[row] for row, count in left.items() if count > right[row]}) + Counter(
        {row: -count for row, count in right.items() if count < 0 and row not in left}
    )


def _rows(counted: Counter[Row]) -> str:
    total = sum(counted.values())
    return f"{total} row is" if total == 1 else f"{total} rows are"


def _nearest_pair(missing: Iterable[Row], extra: Iterable[Row]) -> tuple[Row, Row]:
    left = next(iter(missing))
    return left, max(extra, key=lambda row: len(set(row) & set(left)))


def _shown(row: Row) -> str:
    text = ", ".join(f"{name}: {value}" for name, value in row)
    return "{" + (text if len(text) <= 300 else text[:297] + "...") + "}"


def _text(value: Any) -> str:
    if isinstance(value, float):
        return "0" if value == 0 else format(value, _FLOAT_DIGITS)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {_text(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return "[" + ", ".join(_text(inner) for inner in value) + "]"
    return shown(value, 10_000)
