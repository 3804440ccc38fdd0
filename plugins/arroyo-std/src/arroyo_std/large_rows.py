"""Rows that one batch may not hold: Arrow's text has 32-bit offsets, 2 GiB of it in a column.

`Rows` are a batch where one can hold them, and a table of several chunks where it might not. Both have `column`,
`columns`, `schema`, `num_rows`, `filter` and `slice`. `Groups`, `order_codes` and `value_hashes` take the columns of
either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from arroyo_core.api.hashing import hash_batch
from arroyo_core.api.updating import interleave_updates
from arroyo_core.errors import DataError
from arroyo_core.state import cut_rows, take_in_parts, take_parts

Rows: TypeAlias = pa.RecordBatch | pa.Table
Numbers = npt.NDArray[np.int64]
#: Makes fewer rows of some; may be given what it made, with others.
Merge = Callable[[pa.RecordBatch], pa.RecordBatch]

#: What is joined into one batch without a second thought: far below the 2 GiB that a column of text can hold.
BATCH_BYTES = 1 << 30
#: Large rows are sent in batches of about so much.
OUTPUT_BYTES = 64 << 20

_HASH_BITS = 64


class TooLargeError(DataError):
    """Rows that are needed at once are more than a batch can hold."""


def size_bytes(parts: Sequence[pa.RecordBatch]) -> int:
    size: int = sum(part.nbytes for part in parts)
    return size


def is_large(parts: Sequence[pa.RecordBatch]) -> bool:
    """Whether one batch might not hold all rows."""
    return size_bytes(parts) > BATCH_BYTES


def join_rows(parts: Sequence[pa.RecordBatch]) -> Rows:
    """All rows, in their order; there must be a part. Those of a table are not copied."""
    if len(parts) == 1:
        return parts[0]
    return pa.Table.from_batches(parts) if is_large(parts) else pa.concat_batches(parts)


def concat(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """All rows in one batch; raises `TooLargeError` if it cannot hold them."""
    if len(parts) == 1:
        return parts[0]
    try:
        return pa.concat_batches(parts)
    except pa.ArrowInvalid as error:
        rows, size = sum(part.num_rows for part in parts), size_bytes(parts)
        raise TooLargeError(
            f"{rows:,} rows of {size:,} bytes are needed at once, and a batch holds 2 GiB of a column: "
            "use smaller windows, more keys, or keep fewer columns"
        ) from error


def concat_arrays(parts: Sequence[pa.Array]) -> pa.Array:
    """All values in one array; raises `TooLargeError` if it cannot hold them."""
    try:
        return pa.concat_arrays(parts)
    except pa.ArrowInvalid as error:
        rows, size = sum(len(part) for part in parts), sum(part.nbytes for part in parts)
        raise TooLargeError(
            f"{rows:,} values of {size:,} bytes are needed at once, and a column holds 2 GiB: "
            "use smaller windows, more keys, or keep fewer values"
        ) from error


def join_arrays(parts: Sequence[pa.Array]) -> pa.Array | pa.ChunkedArray:
    """All values: in one array, or as they are where they are large."""
    return pa.chunked_array(parts) if sum(part.nbytes for part in parts) > BATCH_BYTES else pa.concat_arrays(parts)


def take_values(column: pa.Array | pa.ChunkedArray, numbers: Numbers) -> pa.Array:
    """Some values, each of them once at most, in one array; raises `TooLargeError` if it cannot hold them."""
    if isinstance(column, pa.Array):
        return column.take(pa.array(numbers))
    return concat_arrays(take_in_parts(pa.table([column], names=["values"]), numbers).column(0).chunks)


def as_batch(rows: Rows) -> pa.RecordBatch:
    """All rows in one batch; raises `TooLargeError` if it cannot hold them."""
    if isinstance(rows, pa.RecordBatch):
        return rows
    return concat(rows.to_batches()) if rows.num_rows else pa.RecordBatch.from_pylist([], schema=rows.schema)


def shrink(rows: Rows) -> Rows:
    """The same rows as one batch, where it can surely hold them."""
    return rows if isinstance(rows, pa.RecordBatch) or rows.nbytes > BATCH_BYTES else as_batch(rows)


def batches_of(rows: Rows) -> list[pa.RecordBatch]:
    """The rows as they are held."""
    found: list[pa.RecordBatch] = rows.to_batches() if isinstance(rows, pa.Table) else [rows]
    return found


def take(rows: Rows, numbers: Numbers) -> Rows:
    """Some rows, each of them once at most, in any order."""
    return take_in_parts(rows, numbers) if isinstance(rows, pa.Table) else rows.take(pa.array(numbers))


def take_batches(rows: Rows, numbers: Numbers) -> Iterator[pa.RecordBatch]:
    """Some rows in any order and any number of times: in one batch, or in several where they are large."""
    if isinstance(rows, pa.RecordBatch):
        taken = _take_one_batch(rows, numbers)
        if taken is not None:
            yield taken
            return
        rows = pa.Table.from_batches([rows])
    for part in take_parts(rows, numbers, OUTPUT_BYTES):
        yield from part.to_batches()


def cut_batches(rows: Rows) -> Iterator[pa.RecordBatch]:
    """All rows in their order: those of a table in batches of moderate size."""
    if isinstance(rows, pa.RecordBatch):
        yield rows
        return
    for part in cut_rows(rows, OUTPUT_BYTES):
        yield from part.to_batches()


def whole_groups(parts: Sequence[pa.RecordBatch], names: Sequence[str]) -> Iterator[Rows]:
    """All rows, at once if they are not large; else rows with equal values of `names` come together."""
    for found in split_groups([parts], [names]):
        yield join_rows(found[0])


def split_groups(
    sides: Sequence[Sequence[pa.RecordBatch]], names: Sequence[Sequence[str]]
) -> Iterator[list[Sequence[pa.RecordBatch]]]:
    """The rows of several sides in as many steps as they need; equal values of `names` come in the same step.

    The columns of `names` have the same types on each side.
    """
    size = sum(size_bytes(parts) for parts in sides)
    if size <= BATCH_BYTES:
        yield list(sides)
        return
    # Twice as many as needed, because groups differ in size.
    steps = 2 * size // BATCH_BYTES + 1
    numbers = [[hash_batch(part, keys) % steps for part in parts] for parts, keys in zip(sides, names, strict=True)]
    for step in range(steps):
        yield [
            [part.filter(pa.array(number == step)) for part, number in zip(parts, found, strict=True)]
            for parts, found in zip(sides, numbers, strict=True)
        ]


def merge_parts(parts: Sequence[pa.RecordBatch], merge: Merge) -> pa.RecordBatch:
    """What `merge` makes of all rows; there must be a part.

    Where one batch could not hold them, they are merged some at a time; raises `TooLargeError` if even the result is
    too large.
    """
    if not is_large(parts):
        return merge(concat(parts))
    half = BATCH_BYTES // 2
    held: list[pa.RecordBatch] = []
    fresh_bytes = 0
    for part in cut_rows(pa.Table.from_batches(parts), half):
        if fresh_bytes + part.nbytes > half and held:
            held, fresh_bytes = [merge(concat(held))], 0
        held += part.to_batches()
        fresh_bytes += part.nbytes
    return merge(concat(held))


def merge_groups(parts: Sequence[pa.RecordBatch], names: Sequence[str], merge: Merge) -> Iterator[pa.RecordBatch]:
    """What `merge` makes of rows with equal values of `names`, in as few batches as can hold it; none for none."""
    for found in split_groups([parts], [names]) if parts else ():
        rows = [part for part in found[0] if part.num_rows]
        if rows:
            yield from _merge_some(rows, names, merge, bit=0)


def _merge_some(
    parts: Sequence[pa.RecordBatch], names: Sequence[str], merge: Merge, *, bit: int
) -> Iterator[pa.RecordBatch]:
    """As `merge_groups`: all at once, unless there are groups of which two are too large for one batch."""
    try:
        yield merge_parts(parts, merge)
        return
    except TooLargeError:
        hashes = [hash_batch(part, names) for part in parts]
        if bit == _HASH_BITS or len(np.unique(np.concatenate(hashes))) == 1:
            raise
    for side in (0, 1):
        masks = [(each >> np.uint64(bit)) & np.uint64(1) == side for each in hashes]
        some = [part.filter(pa.array(mask)) for part, mask in zip(parts, masks, strict=True) if mask.any()]
        if some:
            yield from _merge_some(some, names, merge, bit=bit + 1)


def interleave(
    retracts: pa.RecordBatch, appends: pa.RecordBatch, *, retract_ranks: Numbers, append_ranks: Numbers
) -> Iterator[pa.RecordBatch]:
    """What `interleave_updates` gives: in one batch, or in several where that would be large."""
    if not is_large([retracts, appends]):
        yield interleave_updates(retracts, appends, retract_ranks=retract_ranks, append_ranks=append_ranks)
        return
    order = np.argsort(np.concatenate([retract_ranks, append_ranks]), kind="stable")
    yield from take_batches(pa.Table.from_batches([retracts, appends]), order)


def _take_one_batch(rows: pa.RecordBatch, numbers: Numbers) -> pa.RecordBatch | None:
    """None where one batch would be large, because rows are taken several times."""
    if len(numbers) > rows.num_rows and rows.nbytes // rows.num_rows * len(numbers) > BATCH_BYTES:
        return None
    try:
        return rows.take(pa.array(numbers))
    except pa.ArrowInvalid:
        return None
