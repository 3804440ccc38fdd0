"""Rows that one batch may not hold: Arrow's text has 32-bit offsets, 2 GiB of it in a column.

`Rows` are a batch where one can hold them, and a table of several chunks where it might not. Both have `column`,
`columns`, `schema`, `num_rows`, `filter` and `slice`. `Groups`, `order_codes` and `value_hashes` take the columns of
either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from arroyo_core.api.hashing import hash_batch
from arroyo_core.errors import DataError
from arroyo_core.state import cut_rows, take_in_parts, take_parts

Rows: TypeAlias = pa.RecordBatch | pa.Table
Numbers = npt.NDArray[np.int64]

#: What is joined into one batch without a second thought: far below the 2 GiB that a column of text can hold.
BATCH_BYTES = 1 << 30
#: Large rows are sent in batches of about so much.
OUTPUT_BYTES = 64 << 20


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
    """All rows in one batch; raises `DataError` if it cannot hold them."""
    if len(parts) == 1:
        return parts[0]
    try:
        return pa.concat_batches(parts)
    except pa.ArrowInvalid as error:
        rows, size = sum(part.num_rows for part in parts), size_bytes(parts)
        raise DataError(
            f"{rows:,} rows of {size:,} bytes are needed at once, and a batch holds 2 GiB of a column: "
            "use smaller windows, more keys, or keep fewer columns"
        ) from error


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


def _take_one_batch(rows: pa.RecordBatch, numbers: Numbers) -> pa.RecordBatch | None:
    """None where one batch would be large, because rows are taken several times."""
    if len(numbers) > rows.num_rows and rows.nbytes // rows.num_rows * len(numbers) > BATCH_BYTES:
        return None
    try:
        return rows.take(pa.array(numbers))
    except pa.ArrowInvalid:
        return None
