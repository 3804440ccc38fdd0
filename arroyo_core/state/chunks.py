"""Tables of any size: columns in chunks that 32-bit offsets can hold.

Arrow's text and lists have 32-bit offsets: an array holds 2 GiB of them, and what joins several arrays, or takes rows
of them, fails as soon as they are more together. Here results come in chunks of at most about `MAX_CHUNK_BYTES`
instead. Where one array is needed, it gets 64-bit offsets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Numbers = npt.NDArray[np.int64]
RowsT = TypeVar("RowsT", pa.Table, pa.RecordBatch)

#: The most that one chunk holds, unless one row is larger. Well below 2 GiB: joining two never overflows.
MAX_CHUNK_BYTES = 1 << 30


def fits_chunk(size_bytes: int) -> bool:
    """Whether so much may be in one chunk."""
    return size_bytes <= MAX_CHUNK_BYTES


def cut_chunks(table: pa.Table) -> Iterator[pa.Table]:
    """The rows in order, in parts that may be one chunk each; nothing is copied."""
    return cut_rows(table, MAX_CHUNK_BYTES)


def cut_rows(table: pa.Table, max_bytes: int) -> Iterator[pa.Table]:
    """The rows in order, in parts of at most `max_bytes`, or of one row; nothing is copied."""
    if table.num_rows <= 1 or table.nbytes <= max_bytes:
        if table.num_rows:
            yield table
        return
    # By halves, because only Arrow knows how much rows of nested columns take.
    half = table.num_rows // 2
    parts = (table.slice(0, half), table.slice(half))
    if min(part.nbytes for part in parts) > 0.9 * table.nbytes:
        # A dictionary that all rows share is not cut with them.
        yield table
        return
    for part in parts:
        yield from cut_rows(part, max_bytes)


def combine(table: pa.Table) -> pa.Table:
    """The same rows in as few chunks as may be: one, unless that would be too large."""
    if all(column.num_chunks <= 1 for column in table.columns):
        return table
    if table.nbytes <= MAX_CHUNK_BYTES:
        return table.combine_chunks()
    return pa.concat_tables(part.combine_chunks() for part in _gather_parts(table))


def take_rows(table: pa.Table, numbers: Numbers) -> pa.Table:
    """Some rows of a table, in any order and any number of times."""
    if len(numbers) == 0:
        return table.slice(0, 0)
    try:
        return _take(table, numbers)
    except pa.ArrowInvalid:
        # The table is larger than an array, or some rows are wide, or are taken many times.
        return take_in_parts(table, numbers)


def take_in_parts(table: pa.Table, numbers: Numbers) -> pa.Table:
    """As `take_rows`, for a table in large chunks: Arrow would join them all, to take a single row of them."""
    if len(numbers) == 0:
        return table.slice(0, 0)
    return pa.concat_tables(take_parts(table, numbers, MAX_CHUNK_BYTES))


def take_parts(table: pa.Table, numbers: Numbers, max_bytes: int) -> Iterator[pa.Table]:
    """As `take_rows`, one chunk after the other, each of at most `max_bytes`, or of one row; none for no rows."""
    if len(numbers) == 0:
        return
    batches = table.to_batches()
    ends = np.cumsum([batch.num_rows for batch in batches])
    # About as many as fit on average, halved where they do not.
    row_bytes = max(1, sum(batch.nbytes for batch in batches) // int(ends[-1]))
    step = max(1, max_bytes // 2 // row_bytes)
    waiting = [numbers[start : start + step] for start in range(0, len(numbers), step)]
    waiting.reverse()
    while waiting:
        part = waiting.pop()
        try:
            taken = _take_from(batches, table.schema, ends, part)
        except pa.ArrowInvalid:
            if len(part) == 1:
                raise
            taken = None
        if taken is not None and (taken.nbytes <= max_bytes or len(part) == 1):
            yield taken
            continue
        half = len(part) // 2
        waiting += [part[half:], part[:half]]


def take_column(column: Any, numbers: Numbers) -> Any:
    """Some rows of a column or an array; of an array they may be a column."""
    try:
        return _checked(_arrow_take(column, numbers))
    except pa.ArrowInvalid:
        return take_in_parts(pa.table([column], names=["column"]), numbers).column(0)


def one_chunk(column: Any) -> pa.Array:
    """A column, or an array, as one array: with 64-bit offsets where it is too large for others."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    if column.nbytes <= MAX_CHUNK_BYTES:
        return column.combine_chunks()
    return column.cast(large_type(column.type)).combine_chunks()


def large_type(kind: pa.DataType) -> pa.DataType:
    """The type with 64-bit offsets for the same values; maps have none."""
    if pa.types.is_string(kind):
        return pa.large_string()
    if pa.types.is_binary(kind):
        return pa.large_binary()
    if pa.types.is_list(kind):
        return pa.large_list(kind.value_field.with_type(large_type(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(large_type(field.type)) for field in kind])
    return kind


def _gather_parts(table: pa.Table) -> Iterator[pa.Table]:
    """Parts of about the greatest size, of neighbouring chunks or halves of them."""
    held: list[pa.Table] = []
    size = 0
    for part in cut_rows(table, MAX_CHUNK_BYTES // 2):
        if held and size + part.nbytes > MAX_CHUNK_BYTES:
            yield pa.concat_tables(held)
            held, size = [], 0
        held.append(part)
        size += part.nbytes
    if held:
        yield pa.concat_tables(held)


def _take_from(batches: Sequence[pa.RecordBatch], schema: pa.Schema, ends: Numbers, numbers: Numbers) -> pa.Table:
    """Rows of several batches as one chunk; only what is taken is copied, twice where it is out of order."""
    places = np.searchsorted(ends, numbers, side="right")
    order = None if bool((places[:-1] <= places[1:]).all()) else np.argsort(places, kind="stable")
    if order is not None:
        numbers, places = numbers[order], places[order]
    found = []
    for place in np.unique(places).tolist():
        first, last = (int(np.searchsorted(places, place, side=side)) for side in ("left", "right"))
        start = int(ends[place]) - batches[place].num_rows
        found.append(_take(batches[place], numbers[first:last] - start))
    taken = pa.Table.from_batches(found, schema=schema).combine_chunks()
    if order is None:
        return taken
    back = np.empty(len(order), dtype=np.int64)
    back[order] = np.arange(len(order))
    return _take(taken, back)


def _take(rows: RowsT, numbers: Numbers) -> RowsT:
    """Arrow's own way, which copies what is in several chunks; `ArrowInvalid` where 32-bit offsets do not suffice."""
    taken = _arrow_take(rows, numbers)
    for column in taken.columns:
        _checked(column)
    return taken


def _arrow_take(rows: Any, numbers: Numbers) -> Any:
    return rows.take(pa.array(numbers))


def _checked(column: Any) -> Any:
    """What Arrow took; `ArrowInvalid` where it should have said so."""
    if pa.types.is_nested(column.type):
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        if any(_has_overflowed(chunk) for chunk in chunks):
            raise pa.ArrowInvalid("the offsets of a list overflowed")
    return column


def _has_overflowed(array: pa.Array) -> bool:
    """Whether the lists of an array have more items than their offsets can count: Arrow checks it for text only.

    The length of each list is right even then, because the difference of two offsets overflows like they did.
    """
    if pa.types.is_struct(array.type):
        return any(_has_overflowed(array.field(index)) for index in range(array.type.num_fields))
    if not (pa.types.is_list(array.type) or pa.types.is_map(array.type)):
        return False
    lengths = np.diff(array.offsets.to_numpy())
    if int(lengths.sum(dtype=np.int64)) > np.iinfo(np.int32).max:
        return True
    return _has_overflowed(array.values)
