"""States of many values: one list per group, flattened to rows to work on, and gathered again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_std.aggregates.groups import Codes, Groups, combine_codes, encode_values, order_by_code
from arroyo_std.large_rows import TooLargeError, take_values


def lengths_of(lists: pa.Array) -> Codes:
    """The number of elements of each list; null has none."""
    lengths: Codes = pc.fill_null(pc.list_value_length(lists), 0).cast(pa.int64()).to_numpy()
    return lengths


def flatten(lists: Sequence[pa.Array]) -> tuple[Codes, list[pa.Array]]:
    """The elements of lists of equal lengths, and for each the number of its list."""
    lengths = lengths_of(lists[0])
    parents = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)
    return parents, [pc.list_flatten(each) for each in lists]


def gather(groups: Groups, columns: Sequence[pa.Array]) -> list[pa.Array]:
    """One list per group of the values of each column, in the order of the rows."""
    codes = groups.codes
    if len(codes) and not bool((codes[:-1] <= codes[1:]).all()):
        order = pa.array(order_by_code(codes, groups.count))
        columns = [column.take(order) for column in columns]
    if len(codes) > np.iinfo(np.int32).max:
        raise TooLargeError(f"lists of {len(codes):,} values are needed at once, and 32-bit offsets count 2 billion")
    offsets = pa.array(np.concatenate([[0], np.cumsum(groups.sizes())]).astype(np.int32))
    return [pa.ListArray.from_arrays(offsets, column) for column in columns]


def tally(groups: Groups, columns: Sequence[Any], counts: Codes) -> tuple[Groups, list[pa.Array], Codes]:
    """Equal values of one group as one row, with the sum of their counts; those that sum to zero go.

    Columns may be chunked, and then be larger than an array; raises `TooLargeError` if the result is.
    """
    codes, count = groups.codes, groups.count
    for place, column in enumerate(columns):
        codes, count = combine_codes(codes, *encode_values(column), is_dense=place > 0)
    distinct = Groups(codes, count)
    summed = np.zeros(distinct.count, dtype=np.int64)
    np.add.at(summed, distinct.codes, counts)
    rows = distinct.first_rows()
    if not summed.all():
        rows, summed = rows[summed != 0], summed[summed != 0]
    taken = [take_values(each, rows) for each in columns]
    return Groups(groups.codes[rows], groups.count, has_empty=True), taken, summed
