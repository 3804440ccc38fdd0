"""Answers within a known error from states of bounded size: approx_count_distinct and approx_percentile."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from arroyo_core.api.hashing import hash_columns
from arroyo_std.aggregates.function import Aggregate, Rows, States
from arroyo_std.aggregates.groups import Codes, Groups
from arroyo_std.aggregates.lists import flatten, gather, tally

#: 4,096 registers: a standard error of 1.6 %.
REGISTER_BITS = 12
REGISTERS = 1 << REGISTER_BITS
_ALPHA = 0.7213 / (1 + 1.079 / REGISTERS)

#: The greatest relative error of a percentile.
ACCURACY = 0.01
_GROWTH = (1 + ACCURACY) / (1 - ACCURACY)
_LOG_GROWTH = float(np.log(_GROWTH))
#: Buckets of positive numbers lie around this one, those of negative numbers around its negative; 0 is for zero.
_CENTRE = 1 << 20


class ApproxCountDistinct(Aggregate):
    """HyperLogLog: of the hashes that fall into a register, the longest run of leading zeros. Nulls do not count.

    Only registers that were hit are kept, each as `register * 64 + rank`: at most 4,096 small integers.
    """

    output_type = pa.int64()

    def __init__(self, column: str) -> None:
        self._column = column

    def state_fields(self) -> list[tuple[str, pa.DataType]]:
        return [("registers", pa.list_(pa.int32()))]

    def partial(self, rows: Rows, groups: Groups) -> States:
        selected, columns, _ = rows.select(groups, [self._column])
        hashes = hash_columns(columns)
        registers = (hashes >> np.uint64(64 - REGISTER_BITS)).astype(np.int64)
        # The bit behind the hash ends the run; a float of the rest has its first bit as the exponent.
        rest = (hashes << np.uint64(REGISTER_BITS)) | np.uint64(1 << (REGISTER_BITS - 1))
        ranks = 65 - np.frexp((rest >> np.uint64(11)).astype(np.float64))[1] - 11
        return self._keep_greatest(selected, registers, ranks.astype(np.int64))

    def merge(self, states: States, groups: Groups) -> States:
        parents, (entries,) = flatten(states)
        numbers = entries.to_numpy().astype(np.int64)
        elements = Groups(groups.codes[parents], groups.count, has_empty=True)
        return self._keep_greatest(elements, numbers >> 6, numbers & 63)

    def finish(self, states: States) -> pa.Array:
        parents, (entries,) = flatten(states)
        count = len(states[0])
        hit = np.bincount(parents, minlength=count)
        ranks = entries.to_numpy().astype(np.int64) & 63
        total = np.bincount(parents, weights=np.exp2(-ranks.astype(np.float64)), minlength=count) + (REGISTERS - hit)
        estimate = _ALPHA * REGISTERS * REGISTERS / total
        empty = np.maximum(REGISTERS - hit, 1)
        by_empty = REGISTERS * np.log(REGISTERS / empty)
        is_small = (estimate <= 2.5 * REGISTERS) & (hit < REGISTERS)
        return pa.array(np.rint(np.where(is_small, by_empty, estimate)).astype(np.int64))

    def _keep_greatest(self, groups: Groups, registers: Codes, ranks: Codes) -> States:
        cells = groups.codes * REGISTERS + registers
        distinct = Groups.of_columns([pa.array(cells)], len(cells))
        greatest = np.zeros(distinct.count, dtype=np.int64)
        np.maximum.at(greatest, distinct.codes, ranks)
        rows = distinct.first_rows()
        entries = pa.array((registers[rows] * 64 + greatest).astype(np.int32))
        return gather(Groups(groups.codes[rows], groups.count, has_empty=True), [entries])


class ApproxPercentile(Aggregate):
    """DDSketch: counts by buckets whose bounds grow by a fixed ratio, so that a value is known to within 1 %.

    Nulls and NaN do not count. A state has one number and one count for each bucket that was hit: a thousand
    buckets span a factor of 4 * 10**8.
    """

    is_retractable = True
    output_type = pa.float64()

    def __init__(self, column: str, *, percentile: float) -> None:
        self._column = column
        self._percentile = percentile

    def state_fields(self) -> list[tuple[str, pa.DataType]]:
        return [("buckets", pa.list_(pa.int32())), ("counts", pa.list_(pa.int64()))]

    def partial(self, rows: Rows, groups: Groups) -> States:
        selected, (values,), _ = rows.select(groups, [self._column])
        numbers = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        if np.isnan(numbers).any():
            known = ~np.isnan(numbers)
            selected, numbers = selected.where(known), numbers[known]
        return self._gather(*tally(selected, [pa.array(_buckets(numbers))], np.ones(len(numbers), dtype=np.int64)))

    def merge(self, states: States, groups: Groups) -> States:
        parents, (buckets, counts) = flatten(states)
        elements = Groups(groups.codes[parents], groups.count, has_empty=True)
        return self._gather(*tally(elements, [buckets], counts.to_numpy()))

    def subtract(self, states: States, others: States) -> States:
        kept, (buckets, counts) = flatten(states)
        gone, (gone_buckets, gone_counts) = flatten(others)
        joined = Groups(np.concatenate([kept, gone]), len(states[0]), has_empty=True)
        both = np.concatenate([counts.to_numpy(), -gone_counts.to_numpy()])
        return self._gather(*tally(joined, [pa.concat_arrays([buckets, gone_buckets])], both))

    def finish(self, states: States) -> pa.Array:
        parents, (buckets, counts) = flatten(states)
        numbers, weights = buckets.to_numpy(), np.maximum(counts.to_numpy(), 0)
        order = np.lexsort((numbers, parents))
        parents, numbers, weights = parents[order], numbers[order], weights[order]
        totals = np.zeros(len(states[0]), dtype=np.int64)
        np.add.at(totals, parents, weights)
        if not len(numbers):
            return pa.nulls(len(totals), pa.float64())
        before = np.cumsum(totals) - totals
        rank = np.floor(self._percentile * np.maximum(totals - 1, 0)).astype(np.int64)
        places = np.searchsorted(np.cumsum(weights), before + rank, side="right")
        return pa.array(_middles(numbers[np.minimum(places, len(numbers) - 1)]), pa.float64(), mask=totals == 0)

    def _gather(self, groups: Groups, columns: list[pa.Array], counts: Codes) -> States:
        return gather(groups, [*columns, pa.array(counts)])


class ApproxWeightedPercentile(Aggregate):
    """The same buckets, of values that count as often as their weights say: the first at which a part is reached.

    Rows without a positive, finite weight do not count.
    """

    output_type = pa.float64()

    def __init__(self, column: str, weight: str, *, percentile: float) -> None:
        self._columns = (column, weight)
        self._percentile = percentile

    def state_fields(self) -> list[tuple[str, pa.DataType]]:
        return [("buckets", pa.list_(pa.int32())), ("weights", pa.list_(pa.float64()))]

    def partial(self, rows: Rows, groups: Groups) -> States:
        selected, columns, _ = rows.select(groups, self._columns)
        numbers, weights = (each.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False) for each in columns)
        known = ~np.isnan(numbers) & (weights > 0) & np.isfinite(weights)
        return self._summed(selected.where(known), _buckets(numbers[known]), weights[known])

    def merge(self, states: States, groups: Groups) -> States:
        parents, (buckets, weights) = flatten(states)
        elements = Groups(groups.codes[parents], groups.count, has_empty=True)
        return self._summed(elements, buckets.to_numpy(), weights.to_numpy())

    def finish(self, states: States) -> pa.Array:
        parents, (buckets, weights) = flatten(states)
        numbers, sizes = buckets.to_numpy(), weights.to_numpy()
        order = np.lexsort((numbers, parents))
        parents, numbers, sizes = parents[order], numbers[order], sizes[order]
        count = len(states[0])
        if not len(numbers):
            return pa.nulls(count, pa.float64())
        first = np.searchsorted(parents, np.arange(count))
        # Sums within a group only: a large group would take the last digits of a small one behind it.
        running = np.concatenate([np.cumsum(part) for part in np.split(sizes, first[1:])])
        last = np.searchsorted(parents, np.arange(count), side="right") - 1
        is_empty = last < first
        wanted = self._percentile * running[np.maximum(last, 0)]
        is_before = running < wanted[parents]
        places = np.minimum(first + np.bincount(parents[is_before], minlength=count), np.maximum(last, 0))
        return pa.array(_middles(numbers[places]), pa.float64(), mask=is_empty)

    def _summed(self, groups: Groups, buckets: npt.NDArray[np.int32], weights: npt.NDArray[np.float64]) -> States:
        distinct = Groups.of_columns([pa.array(groups.codes), pa.array(buckets)], len(buckets))
        sums = np.bincount(distinct.codes, weights=weights, minlength=distinct.count)
        rows = distinct.first_rows()
        kept = Groups(groups.codes[rows], groups.count, has_empty=True)
        return gather(kept, [pa.array(buckets[rows], pa.int32()), pa.array(sums, pa.float64())])


def _buckets(numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.int32]:
    """The bucket of each number: bucket i of positive numbers holds those in (growth**(i-1), growth**i]."""
    sizes = np.clip(np.abs(numbers), np.finfo(np.float64).tiny, np.finfo(np.float64).max)
    indices = np.ceil(np.log(sizes) / _LOG_GROWTH).astype(np.int32) + _CENTRE
    return np.where(numbers == 0, 0, np.where(numbers < 0, -indices, indices)).astype(np.int32)


def _middles(buckets: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
    """The number that is within the accuracy of all numbers of its bucket."""
    with np.errstate(over="ignore"):
        sizes = np.exp((np.abs(buckets) - _CENTRE) * _LOG_GROWTH) * (2 / (1 + _GROWTH))
    sizes = np.minimum(sizes, np.finfo(np.float64).max)
    return np.where(buckets == 0, 0.0, np.sign(buckets) * sizes)
