"""The columns of a join: which must be equal, and what those of the output are called."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from arroyo_core.api import ArroyoSchema
from arroyo_core.api.hashing import is_hashable
from arroyo_core.api.updating import UPDATING_META, is_updating
from arroyo_core.errors import ConfigError
from arroyo_core.state import take_in_parts
from arroyo_std.columns import check_column, normal_type
from arroyo_std.large_rows import Rows as LargeRows

if TYPE_CHECKING:
    from arroyo_std.joins.condition import Condition, StartedCondition

Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]
ScalarT = TypeVar("ScalarT", bound=np.generic)

LEFT, RIGHT = 0, 1
SIDE_NAMES = ("left", "right")


class JoinType(StrEnum):
    """Which rows without a match come out."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"

    @property
    def keeps(self) -> tuple[bool, bool]:
        """For each side, whether its rows without a match come out."""
        return (self in (JoinType.LEFT, JoinType.FULL, JoinType.ANTI), self in (JoinType.RIGHT, JoinType.FULL))

    @property
    def is_filter(self) -> bool:
        """Whether rows of the left side come out as they are, if they have a match, or if they have none."""
        return self in (JoinType.SEMI, JoinType.ANTI)

    @property
    def asks(self) -> tuple[bool, bool]:
        """For each side, whether it matters if a row has a match."""
        return (self.keeps[LEFT] or self.is_filter, self.keeps[RIGHT])


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Two columns that must be equal."""

    left: str
    right: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinSettings:
    """What all joins are told."""

    type: JoinType
    on: tuple[KeyPair, ...]
    #: Put before the names of columns that both sides have, on the left and on the right.
    prefixes: tuple[str, str]
    #: Whether late rows go to a side output rather than nowhere.
    has_late_output: bool = False
    #: What is asked of two rows beside equal keys.
    condition: Condition | None = None


@dataclass(frozen=True, slots=True)
class Side:
    """One input of a join."""

    name: str
    keys: tuple[str, ...]
    time_column: str | None
    #: The columns of the input in plain types, all nullable, without retractions.
    schema: pa.Schema
    is_updating: bool

    @classmethod
    def of_stream(cls, name: str, stream: ArroyoSchema, keys: tuple[str, ...]) -> Side:
        fields = [pa.field(f.name, normal_type(f.type)) for f in stream.schema if f.name != UPDATING_META]
        return cls(name, keys, stream.timestamp_column, pa.schema(fields), is_updating(stream))

    def plain(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of the input in the types of `schema`."""
        columns = [batch.column(field.name) for field in self.schema]
        cast = [c if c.type == f.type else c.cast(f.type) for c, f in zip(columns, self.schema, strict=True)]
        return pa.RecordBatch.from_arrays(cast, schema=self.schema)

    def null_keys(self, batch: pa.RecordBatch, names: Sequence[str] | None = None) -> Mask | None:
        """Which rows have a NULL among the keys, and so equal nothing; None if no row has."""
        found: Mask | None = None
        for name in self.keys if names is None else names:
            column = batch.column(name)
            if column.null_count:
                is_null = column.is_null().to_numpy(zero_copy_only=False)
                found = is_null if found is None else found | is_null
        return found

    def split_null_keys(
        self, rows: pa.RecordBatch, beside: npt.NDArray[ScalarT]
    ) -> tuple[pa.RecordBatch, npt.NDArray[ScalarT], pa.RecordBatch | None, npt.NDArray[ScalarT]]:
        """Rows that can equal others, and those that equal nothing, None if none is there; each with what is beside."""
        is_null = self.null_keys(rows)
        if is_null is None:
            return rows, beside, None, beside[:0]
        return rows.filter(pa.array(~is_null)), beside[~is_null], rows.filter(pa.array(is_null)), beside[is_null]


class JoinLayout:
    """The sides of a join and its output: columns of the left, of the right, and those the join adds.

    `omitted` are columns that do not go to the output, as the join adds them again.
    """

    def __init__(
        self,
        settings: JoinSettings,
        inputs: Sequence[ArroyoSchema],
        *,
        added: Sequence[pa.Field] = (),
        omitted: Sequence[str] = (),
        added_field: str | None = None,
    ) -> None:
        keys = (tuple(pair.left for pair in settings.on), tuple(pair.right for pair in settings.on))
        left, right = (
            Side.of_stream(name, stream, names) for name, stream, names in zip(SIDE_NAMES, inputs, keys, strict=True)
        )
        check_keys(settings.on, left.schema, right.schema)
        self.sides = (left, right)
        self.type = settings.type
        #: Of each side the columns that go to the output, and what they are called there.
        self.columns: tuple[list[str], ...] = tuple(
            [name for name in side.schema.names if name not in omitted] for side in self.sides
        )
        self.names = _output_names(self.columns[LEFT], self.columns[RIGHT], settings.prefixes)
        _check_added([*self.names[LEFT], *self.names[RIGHT]], added, field=added_field)
        fields = [
            side.schema.field(column).with_name(name)
            for side, columns, names in zip(self.sides, self.columns, self.names, strict=True)
            for column, name in zip(columns, names, strict=True)
        ]
        #: Rows of both sides beside each other.
        self.pair_schema = pa.schema([*fields, *added])
        #: Of the output, which has the left side only where the other says no more than which rows come.
        self.schema = self.pair_schema
        if self.type.is_filter:
            self.schema = pa.schema([*(left.schema.field(name) for name in self.columns[LEFT]), *added])

    def stream(self, timestamp_column: str | None) -> ArroyoSchema:
        """The type of the output, partitioned by the keys of a side whose rows are all there."""
        side = RIGHT if self.type is JoinType.RIGHT else LEFT
        names = self.columns[side] if self.type.is_filter else self.names[side]
        renamed = dict(zip(self.columns[side], names, strict=True))
        keys = self.sides[side].keys
        is_keyed = self.type is not JoinType.FULL and all(key in renamed for key in keys)
        return ArroyoSchema(self.schema, timestamp_column, tuple(renamed[key] for key in keys) if is_keyed else None)

    def matched(
        self, left: LargeRows, left_rows: Rows, right: LargeRows, right_rows: Rows, added: Sequence[pa.Array]
    ) -> Iterator[pa.RecordBatch]:
        """Pairs of rows, side by side: in one batch, or in several where it cannot hold them."""
        for pairs, _, _ in self.matching(left, left_rows, right, right_rows, added, None):
            yield pairs

    def matching(
        self,
        left: LargeRows,
        left_rows: Rows,
        right: LargeRows,
        right_rows: Rows,
        added: Sequence[pa.Array],
        condition: StartedCondition | None,
    ) -> Iterator[tuple[pa.RecordBatch, Rows, Rows]]:
        """As `matched`, of the pairs for which the condition holds; with the numbers of their rows."""
        try:
            taken = [*self._take(LEFT, left, left_rows), *self._take(RIGHT, right, right_rows), *added]
        except pa.ArrowInvalid:
            # A few rows are much wider than the others, or one of them has many matches.
            half = len(left_rows) // 2
            if half == 0:
                raise
            for part in (slice(None, half), slice(half, None)):
                rows = (left, left_rows[part], right, right_rows[part])
                yield from self.matching(*rows, [each[part] for each in added], condition)
            return
        pairs = pa.RecordBatch.from_arrays(taken, schema=self.pair_schema)
        if condition is not None and pairs.num_rows:
            holds = condition.mask(pairs)
            if not holds.all():
                pairs, left_rows, right_rows = pairs.filter(pa.array(holds)), left_rows[holds], right_rows[holds]
        if pairs.num_rows:
            yield pairs, left_rows, right_rows

    def padded(self, index: int, batch: pa.RecordBatch, added: Sequence[pa.Array]) -> pa.RecordBatch:
        """Rows of one side, with NULLs for the columns of the other, if the output has these."""
        rows = batch.num_rows
        if self.type.is_filter:
            kept = [batch.column(name) for name in self.columns[LEFT]]
            return pa.RecordBatch.from_arrays([*kept, *added], schema=self.schema)
        mine = [batch.column(name) for name in self.columns[index]]
        other = 1 - index
        nulls = [pa.nulls(rows, self.sides[other].schema.field(name).type) for name in self.columns[other]]
        columns = [*mine, *nulls] if index == LEFT else [*nulls, *mine]
        return pa.RecordBatch.from_arrays([*columns, *added], schema=self.schema)

    def _take(self, index: int, side: LargeRows, rows: Rows) -> list[pa.Array]:
        if isinstance(side, pa.Table):
            return [column.combine_chunks() for column in take_in_parts(side.select(self.columns[index]), rows).columns]
        wanted = pa.array(rows)
        return [side.column(name).take(wanted) for name in self.columns[index]]


def check_keys(on: Sequence[KeyPair], left: pa.Schema, right: pa.Schema) -> None:
    """Raise `ConfigError` at the first pair of columns that is not there, or that cannot be equal."""
    for place, pair in enumerate(on):
        check_column(pair.left, left.names, field=f"on[{place}].left")
        check_column(pair.right, right.names, field=f"on[{place}].right")
        left_type, right_type = left.field(pair.left).type, right.field(pair.right).type
        if not is_hashable(left_type):
            raise ConfigError(
                f"column {pair.left!r} is {left_type}: values of this type cannot be compared",
                field=f"on[{place}].left",
                value=pair.left,
            )
        if left_type != right_type:
            # Rows find each other by the hash of the keys, which is only the same for values of one type.
            raise ConfigError(
                f"keys must be of one type: {pair.left!r} on the left is {left_type}, {pair.right!r} on the right is "
                f"{right_type}; cast one of them with std.project",
                field=f"on[{place}].right",
                value=pair.right,
            )


def _output_names(
    left: Sequence[str], right: Sequence[str], prefixes: tuple[str, str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    shared = set(left) & set(right)
    names = tuple(
        tuple(prefix + name if name in shared else name for name in columns)
        for columns, prefix in zip((left, right), prefixes, strict=True)
    )
    seen: set[str] = set()
    for name in (*names[LEFT], *names[RIGHT]):
        if name in seen:
            raise ConfigError(
                f"the output would have two columns {name!r}: give other prefixes, or rename with std.project",
                field="prefixes",
                value=name,
            )
        seen.add(name)
    return names[LEFT], names[RIGHT]


def _check_added(names: Sequence[str], added: Sequence[pa.Field], *, field: str | None) -> None:
    for each in added:
        if each.name in names:
            raise ConfigError(
                f"the output has a column {each.name!r} of its own: rename that of the input with std.project",
                field=field,
                value=each.name,
            )
