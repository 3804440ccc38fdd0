"""Formats of whole files: what Parquet and Arrow IPC share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from arroyo_core.errors import DataError
from arroyo_formats.conform import conform
from arroyo_formats.format import BadMessage, Decoded, MessageReader
from arroyo_formats.limits import MESSAGE_ROWS_BYTES
from arroyo_formats.messages import empty_batch
from arroyo_formats.plain_sizes import is_folded, plain_bytes


class WholeFileReader(MessageReader):
    """Reads any number of rows from each message, which is a whole file."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema

    @abstractmethod
    def table(self, message: bytes) -> pa.Table:
        """The rows of one file; raises `ArrowException`, `OSError` or `ValueError`."""

    def read(self, messages: Sequence[bytes]) -> Decoded:
        batches: list[pa.RecordBatch] = []
        origins: list[int] = []
        bad: list[BadMessage] = []
        for index, message in enumerate(messages):
            try:
                found = self._batches(message)
            except (pa.ArrowException, DataError, OSError, ValueError) as error:
                bad.append(BadMessage(index, str(error).splitlines()[0] if str(error) else type(error).__name__))
                continue
            batches += found
            origins += [index] * len(found)
        counts = [batch.num_rows for batch in batches]
        joined = pa.concat_batches(batches) if batches else empty_batch(self.schema)
        return Decoded(joined, np.repeat(np.array(origins, dtype=np.int64), counts), bad)

    def _batches(self, message: bytes) -> list[pa.RecordBatch]:
        table = self.table(message)
        # Counting follows offsets, which may lead anywhere.
        table.validate()
        check_message(max(table.nbytes, table.num_rows * max(1, len(self.schema)), _plain_bytes(table)))
        # Bytes that were damaged on the way may pass for values until someone looks at them.
        table.validate(full=True)
        return [conform(batch, self.schema, place="message") for batch in table.to_batches()]


def check_message(size: int) -> None:
    """Raise `DataError` where the rows of one message would have so many bytes."""
    problem = MESSAGE_ROWS_BYTES.problem(size)
    if problem is not None:
        raise DataError(problem)


def _plain_bytes(table: pa.Table) -> int:
    folded = [column for column in table.columns if is_folded(column.type)]
    return sum(plain_bytes(chunk) for column in folded for chunk in column.chunks)


def cut_parts(sizes: Sequence[int], *, part_bytes: int) -> list[tuple[int, int]]:
    """Parts of a file of pieces (row groups, record batches): neighbours together, up to a part's size."""
    parts: list[tuple[int, int]] = []
    start, held = 0, 0
    for piece, size in enumerate(sizes):
        if piece > start and held + size > part_bytes:
            parts.append((start, piece))
            start, held = piece, 0
        held += size
    if start < len(sizes):
        parts.append((start, len(sizes)))
    return parts
