"""Rows of many batches in few, where one batch could not hold all of them: Arrow's text has 32-bit offsets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from arroyo_core.api.hashing import hash_batch
from arroyo_core.errors import DataError

#: What is joined into one batch without a second thought: far below the 2 GiB that a column of text can hold.
BATCH_BYTES = 1 << 30


def concat(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """All rows in one batch; raises `DataError` if it cannot hold them."""
    if len(parts) == 1:
        return parts[0]
    try:
        return pa.concat_batches(parts)
    except pa.ArrowInvalid as error:
        rows, size = sum(part.num_rows for part in parts), sum(part.nbytes for part in parts)
        raise DataError(
            f"{rows:,} rows of {size:,} bytes are needed at once, and a batch holds 2 GiB of a column: "
            "use smaller windows, more keys, or keep fewer columns"
        ) from error


def is_large(parts: Sequence[pa.RecordBatch]) -> bool:
    """Whether one batch might not hold all rows."""
    size: int = sum(part.nbytes for part in parts)
    return size > BATCH_BYTES


def whole_groups(parts: Sequence[pa.RecordBatch], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """All rows, in one batch if they are not large; else rows with equal values of `names` are in one batch."""
    for found in split_groups([parts], [names]):
        yield concat(found[0])


def split_groups(
    sides: Sequence[Sequence[pa.RecordBatch]], names: Sequence[Sequence[str]]
) -> Iterator[list[Sequence[pa.RecordBatch]]]:
    """The rows of several sides in as many steps as they need; equal values of `names` come in the same step.

    The columns of `names` have the same types on each side.
    """
    size = sum(part.nbytes for parts in sides for part in parts)
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
