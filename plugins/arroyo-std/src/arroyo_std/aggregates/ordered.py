"""First and last by event time, and bitwise aggregates: kernels that pyarrow does not have."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from arroyo_std.aggregates.function import Aggregate, Rows, States, Times
from arroyo_std.aggregates.groups import Groups

_BITWISE = {"bit_and": np.bitwise_and, "bit_or": np.bitwise_or, "bit_xor": np.bitwise_xor}


class Ordered(Aggregate):
    """The value, null or not, of the row with the least or the greatest event time.

    Of rows of one time the one that arrived first is the first, and the one that arrived last the last.
    """

    def __init__(self, column: str, kind: pa.DataType, *, is_last: bool) -> None:
        self._column = column
        self._is_last = is_last
        self.output_type = kind

    def state_fields(self) -> list[tuple[str, pa.DataType]]:
        return [("time_us", pa.int64()), ("arrival", pa.int64()), ("value", self.output_type)]

    def partial(self, rows: Rows, groups: Groups) -> States:
        selected, (values,), keep = rows.select(groups, [self._column], has_nulls=True)
        return self._pick(selected, rows.times_us[keep], rows.arrivals[keep], values)

    def merge(self, states: States, groups: Groups) -> States:
        times, arrivals, values = states
        if times.null_count:
            known = times.is_valid()
            groups = groups.where(known.to_numpy(zero_copy_only=False))
            times, arrivals, values = (state.filter(known) for state in states)
        return self._pick(groups, times.to_numpy(), arrivals.to_numpy(), values)

    def finish(self, states: States) -> pa.Array:
        return states[2]

    def _pick(self, groups: Groups, times: Times, arrivals: Times, values: pa.Array) -> States:
        order = np.lexsort((arrivals, times))
        if not self._is_last:
            order = order[::-1]
        chosen = np.full(groups.count, -1, dtype=np.int64)
        # Of several assignments to one place the last remains.
        chosen[groups.codes[order]] = order
        places = pa.array(chosen, mask=chosen < 0)
        return [
            pa.array(times, pa.int64()).take(places),
            pa.array(arrivals, pa.int64()).take(places),
            values.take(places),
        ]


class Bitwise(Aggregate):
    """The bits that all, any or an odd number of the values have. Nulls do not count."""

    def __init__(self, column: str, kind: pa.DataType, *, function: str) -> None:
        self._column = column
        self._function = function
        self.output_type = kind

    def state_fields(self) -> list[tuple[str, pa.DataType]]:
        return [("bits", self.output_type)]

    def partial(self, rows: Rows, groups: Groups) -> States:
        selected, (values,), _ = rows.select(groups, [self._column])
        return self._reduce(selected, values)

    def merge(self, states: States, groups: Groups) -> States:
        known = states[0].is_valid()
        return self._reduce(groups.where(known.to_numpy(zero_copy_only=False)), states[0].drop_null())

    def finish(self, states: States) -> pa.Array:
        return states[0]

    def _reduce(self, groups: Groups, values: pa.Array) -> States:
        numbers = values.to_numpy()
        start = ~numbers.dtype.type(0) if self._function == "bit_and" else numbers.dtype.type(0)
        bits = np.full(groups.count, start, dtype=numbers.dtype)
        _BITWISE[self._function].at(bits, groups.codes, numbers)
        return [pa.array(bits, self.output_type, mask=groups.sizes() == 0)]
