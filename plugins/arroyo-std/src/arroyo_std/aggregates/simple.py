"""Aggregates that pyarrow's kernels do: count, sum, mean, min, max, any, all."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.errors import DataError
from arroyo_std.aggregates.function import KernelAggregate, Rows, States
from arroyo_std.aggregates.groups import Kernel

_WIDE_INTEGER = pa.decimal128(38, 0)


class Count(KernelAggregate):
    """Rows, or with a column the rows that are not null in it."""

    is_retractable = True
    output_type = pa.int64()

    def __init__(self, column: str | None) -> None:
        self._column = column

    def state_fields(self) -> list[tuple[str, pa.DataType]]:
        return [("count", pa.int64())]

    def lift(self, rows: Rows) -> list[Kernel]:
        if self._column is not None:
            return [Kernel("count", rows.values(self._column))]
        if rows.mask is not None:
            # Not their sum, which is null of no rows: a state that is null is one from before there was the aggregate.
            return [Kernel("count", pc.if_else(rows.mask, rows.mask, pa.scalar(None, pa.bool_())))]
        return [Kernel("count_all")]

    def combine(self, states: States) -> list[Kernel]:
        return [Kernel("sum", states[0])]

    def finish(self, states: States) -> pa.Array:
        return pc.fill_null(states[0], 0)

    def subtract(self, states: States, others: States) -> States:
        return [_subtract_counts(states[0], others[0])]


class Sum(KernelAggregate):
    """The sum of what is not null; null where there is nothing.

    Integers add up in 64 bits and decimals in 38 digits: what does not fit is a `DataError`, never a
    wrong number.
    """

    is_retractable = True

    def __init__(self, column: str, kind: pa.DataType, *, label: str) -> None:
        self._column = column
        self._label = label
        if pa.types.is_floating(kind):
            self.output_type = pa.float64()
        elif pa.types.is_decimal(kind):
            self.output_type = pa.decimal128(38, kind.scale)
        else:
            self.output_type = pa.uint64() if pa.types.is_unsigned_integer(kind) else pa.int64()

    def state_fields(self) -> list[tuple[str, pa.DataType]]:
        return [("sum", self.output_type), ("count", pa.int64())]

    def lift(self, rows: Rows) -> list[Kernel]:
        values = rows.values(self._column)
        return [Kernel("sum", self._widen(self._cast(values))), Kernel("count", values)]

    def combine(self, states: States) -> list[Kernel]:
        return [Kernel("sum", self._widen(states[0])), Kernel("sum", states[1])]

    def lower(self, results: list[pa.Array]) -> States:
        return [self._cast(results[0]), results[1]]

    def finish(self, states: States) -> pa.Array:
        return pc.if_else(pc.greater(states[1], 0), states[0], pa.scalar(None, self.output_type))

    def subtract(self, states: States, others: States) -> States:
        total, back = pc.fill_null(states[0], 0), pc.fill_null(others[0], 0)
        if pa.types.is_decimal(self.output_type):
            # The difference of two decimals has one digit more, so there must be room for it.
            wide = pa.decimal256(60, self.output_type.scale)
            total, back = total.cast(wide), back.cast(wide)
        try:
            left = pc.subtract_checked(total, back)
        except pa.ArrowInvalid as error:
            raise self._overflow() from error
        return [self._cast(left), _subtract_counts(states[1], others[1])]

    def _cast(self, values: pa.Array) -> pa.Array:
        if values.type == self.output_type:
            return values
        try:
            return values.cast(self.output_type)
        except pa.ArrowInvalid as error:
            raise self._overflow() from error

    def _overflow(self) -> DataError:
        return DataError(
            f"{self._label}: a sum does not fit in {self.output_type}; sum a decimal or a double instead, "
            f'for example of the expression CAST("{self._column}" AS DECIMAL(38, 0))'
        )

    def _widen(self, values: pa.Array) -> pa.Array:
        """As they are if no sum of them can overflow, whatever the groups; else as wide decimals."""
        if pa.types.is_floating(values.type) or len(values) == 0:
            return values
        bounds = pc.min_max(values)
        least, greatest = bounds["min"].as_py(), bounds["max"].as_py()
        if least is None:
            return values
        greatest_sum = max(abs(least), abs(greatest)) * len(values)
        if pa.types.is_decimal(values.type):
            if greatest_sum.scaleb(self.output_type.scale) < Decimal(10) ** 38:
                return values
            return values.cast(pa.decimal256(76, self.output_type.scale))
        return values if greatest_sum < 2**63 else values.cast(_WIDE_INTEGER)


class Mean(KernelAggregate):
    """The arithmetic mean, as a double."""

    is_retractable = True
    output_type = pa.float64()

    def __init__(self, column: str) -> None:
        self._column = column

    def state_fields(self) -> list[tuple[str, pa.DataType]]:
        return [("sum", pa.float64()), ("count", pa.int64())]

    def lift(self, rows: Rows) -> list[Kernel]:
        values = rows.values(self._column).cast(pa.float64(), safe=False)
        return [Kernel("sum", values), Kernel("count", values)]

    def combine(self, states: States) -> list[Kernel]:
        return [Kernel("sum", states[0]), Kernel("sum", states[1])]

    def finish(self, states: States) -> pa.Array:
        count = pc.if_else(pc.greater(states[1], 0), states[1], pa.scalar(None, pa.int64()))
        return pc.divide(states[0], count.cast(pa.float64()))

    def subtract(self, states: States, others: States) -> States:
        total = pc.subtract(pc.fill_null(states[0], 0.0), pc.fill_null(others[0], 0.0))
        return [total, _subtract_counts(states[1], others[1])]


class Extreme(KernelAggregate):
    """One of the kernels that keep a value of the column's own type: min, max, any, all. Nulls do not count."""

    def __init__(self, column: str, kind: pa.DataType, *, kernel: str) -> None:
        self._column = column
        self._kernel = kernel
        self.output_type = kind

    def state_fields(self) -> list[tuple[str, pa.DataType]]:
        return [(self._kernel, self.output_type)]

    def lift(self, rows: Rows) -> list[Kernel]:
        return [Kernel(self._kernel, rows.values(self._column))]

    def combine(self, states: States) -> list[Kernel]:
        return [Kernel(self._kernel, states[0])]

    def finish(self, states: States) -> pa.Array:
        return states[0]


def _subtract_counts(counts: pa.Array, others: pa.Array) -> pa.Array:
    return pc.subtract(pc.fill_null(counts, 0), pc.fill_null(others, 0))
