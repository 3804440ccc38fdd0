"""What an aggregate function is: states by group that merge in any order and any number of steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_std.aggregates.groups import Groups, Kernel, Mask, canonical

Times = npt.NDArray[np.int64]
States = list[pa.Array]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows to aggregate: their columns, event times, and the order in which they arrived.

    `mask` tells which rows a filter leaves; None for all.
    """

    columns: Mapping[str, pa.Array]
    times_us: Times
    arrivals: Times
    mask: pa.BooleanArray | None = None

    def values(self, name: str) -> pa.Array:
        """A column in a type that kernels take, null where the filter is not true."""
        values = canonical(self.columns[name])
        return values if self.mask is None else pc.if_else(self.mask, values, pa.scalar(None, values.type))

    def select(
        self, groups: Groups, names: Sequence[str], *, has_nulls: bool = False
    ) -> tuple[Groups, list[pa.Array], Mask]:
        """The rows that the filter leaves: their groups, their columns, and which they are.

        Rows that are null in any of the columns go too, unless `has_nulls`.
        """
        keep = np.ones(len(self.times_us), dtype=np.bool_)
        if self.mask is not None:
            keep &= self.mask.to_numpy(zero_copy_only=False)
        columns = [canonical(self.columns[name]) for name in names]
        for column in columns:
            if column.null_count and not has_nulls:
                keep &= column.is_valid().to_numpy(zero_copy_only=False)
        if keep.all():
            return groups, columns, keep
        mask = pa.array(keep)
        return groups.where(keep), [column.filter(mask) for column in columns], keep


class Aggregate(ABC):
    """An aggregate function bound to the types of its columns.

    The state of a group is one value in each of `state_fields`. Merging is associative, and the order of
    states does not matter. A state that is null in all of them is that of no rows: stored states are, of rows from
    before a pipeline had the aggregate.
    """

    #: Whether `subtract` takes back what was added.
    is_retractable: ClassVar[bool] = False
    #: Whether the state of many rows is smaller than the rows, so that it pays to make states before a shuffle.
    is_compact: ClassVar[bool] = True
    output_type: pa.DataType

    @abstractmethod
    def state_fields(self) -> list[tuple[str, pa.DataType]]:
        """Names and types of the columns that hold the state."""

    @abstractmethod
    def partial(self, rows: Rows, groups: Groups) -> States:
        """The state of each group from rows."""

    @abstractmethod
    def merge(self, states: States, groups: Groups) -> States:
        """The state of each group from several states."""

    @abstractmethod
    def finish(self, states: States) -> pa.Array:
        """The result of each state."""

    def subtract(self, states: States, others: States) -> States:
        """Each state without the rows of the other, which it must have had."""
        raise NotImplementedError(f"{type(self).__name__} cannot take back rows")


class KernelAggregate(Aggregate):
    """An aggregate whose states are made and merged by kernels alone, so that many share one pass."""

    @abstractmethod
    def lift(self, rows: Rows) -> list[Kernel]:
        """The kernels that make the states of rows."""

    @abstractmethod
    def combine(self, states: States) -> list[Kernel]:
        """The kernels that merge states."""

    def lower(self, results: list[pa.Array]) -> States:
        """States from what the kernels of either gave."""
        fields = self.state_fields()
        return [
            result if result.type == kind else result.cast(kind)
            for result, (_, kind) in zip(results, fields, strict=True)
        ]

    def partial(self, rows: Rows, groups: Groups) -> States:
        return self.lower(groups.run(self.lift(rows)))

    def merge(self, states: States, groups: Groups) -> States:
        return self.lower(groups.run(self.combine(states)))
