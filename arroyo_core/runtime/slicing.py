"""Record batches cut by what they weigh, not by how many rows they have."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

#: A slice may have so much more than what was asked for before it is cut again.
_TOLERANCE = 1.5

_INDIRECT = frozenset(
    (
        pa.lib.Type_DICTIONARY,
        pa.lib.Type_STRING_VIEW,
        pa.lib.Type_BINARY_VIEW,
        pa.lib.Type_LIST_VIEW,
        pa.lib.Type_LARGE_LIST_VIEW,
    )
)


def cut(batch: pa.RecordBatch, max_bytes: int) -> Iterator[pa.RecordBatch]:
    """Consecutive slices of about `max_bytes` at most, which share its memory; a row that has more is alone.

    A batch with columns that are `is_indirect` stays whole: nobody can tell what a slice of it has.
    """
    size, rows = batch.nbytes, batch.num_rows
    if size <= max_bytes * _TOLERANCE or rows <= 1 or any(is_indirect(kind) for kind in batch.schema.types):
        yield batch
        return
    # Even parts, rather than a small rest.
    start, count = 0, -(-rows // min(rows, round(size / max_bytes)))
    while start < rows:
        part = batch.slice(start, count)
        # Halved rather than cut in proportion: one large row must not make single rows of all those before it.
        while (size := part.nbytes) > max_bytes * _TOLERANCE and part.num_rows > 1:
            part = part.slice(0, part.num_rows // 2)
        yield part
        start += part.num_rows
        if part.num_rows < count or size < max_bytes / 2:
            count = max(1, part.num_rows * max_bytes // max(1, size))


def is_indirect(kind: pa.DataType) -> bool:
    """Whether a slice of such a column refers to all of its parent: dictionaries and views do."""
    if kind.id in _INDIRECT:
        return True
    return any(is_indirect(kind.field(index).type) for index in range(kind.num_fields))
