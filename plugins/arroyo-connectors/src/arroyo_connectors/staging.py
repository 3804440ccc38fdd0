"""The rows of an epoch between its checkpoint and its commit: a compressed Arrow stream for each subtask.

A stream is made of batches of some megabytes, which a commit unpacks one after the other.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec
import pyarrow as pa

from arroyo_connectors.changes import DELETED, Mode
from arroyo_connectors.limits import STAGED_BATCH_BYTES
from arroyo_connectors.staged_streams import BATCH_ROWS, METADATA, DamagedCommitError, Staged, StagedStream, memory_of
from arroyo_connectors.staged_values import check_values
from arroyo_core.errors import DataError

#: Rows are gathered to batches of about this size: large enough to compress well.
BATCH_BYTES = 4 << 20


class StagedWriter:
    """Writes the stream of one subtask; holds it, compressed, and one batch that is not yet full."""

    def __init__(self, schema: pa.Schema, staged: Staged) -> None:
        self._schema = schema.with_metadata({METADATA: msgspec.json.encode(staged)})
        self._out = io.BytesIO()
        self._stream: pa.ipc.RecordBatchStreamWriter | None = None
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        self._waiting_rows = 0

    def write(self, rows: pa.RecordBatch) -> None:
        for batch in _cut(rows):
            if self._waiting_bytes + batch.nbytes > BATCH_BYTES or self._waiting_rows + batch.num_rows > BATCH_ROWS:
                self._write_batch()
            self._waiting.append(batch)
            self._waiting_bytes += batch.nbytes
            self._waiting_rows += batch.num_rows

    def close(self) -> bytes:
        """The stream; empty where there was no row."""
        self._write_batch()
        if self._stream is None:
            return b""
        self._stream.close()
        return self._out.getvalue()

    def _write_batch(self) -> None:
        if not self._waiting:
            return
        if self._stream is None:
            # Each byte is read once, by the driver, which has to keep up with all tasks: fast rather than small.
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            self._stream = pa.ipc.new_stream(self._out, self._schema, options=options)
        batch = pa.concat_batches(self._waiting)
        check_values(batch)
        problem = STAGED_BATCH_BYTES.problem(max(memory_of(batch), pa.ipc.get_record_batch_size(batch)))
        if problem is not None:
            raise DataError(f"a row is too large to wait for its commit: {problem}")
        self._stream.write_batch(batch)
        self._waiting.clear()
        self._waiting_bytes = self._waiting_rows = 0


@dataclass(frozen=True, slots=True)
class StagedBatch:
    """One batch of an epoch, and what its rows have in common."""

    rows: pa.RecordBatch
    staged: Staged


class StagedEpoch:
    """What all subtasks staged in one epoch: batches in an order that is always the same.

    Raises `DamagedCommitError`, here and for each batch, where it is not what a sink has staged.
    """

    def __init__(self, streams: Mapping[int, bytes]) -> None:
        self._streams = [StagedStream(subtask, streams[subtask]) for subtask in sorted(streams) if streams[subtask]]
        for stream in self._streams[1:]:
            first = self._streams[0]
            if stream.schema != first.schema or stream.staged != first.staged:
                raise DamagedCommitError(
                    "commit data of two subtasks differ in their columns, or in how they change rows"
                )

    @property
    def is_empty(self) -> bool:
        return not self._streams

    @property
    def rows(self) -> pa.Schema:
        """The columns of the rows; there must be one."""
        first = self._streams[0]
        if first.staged.mode is Mode.APPEND:
            return first.schema
        return pa.schema([field for field in first.schema if field.name != DELETED])

    def batches(self) -> Iterator[StagedBatch]:
        """Batch after batch, each unpacked when it is asked for."""
        for stream in self._streams:
            for rows in stream.batches():
                yield StagedBatch(rows, stream.staged)


def _cut(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batch in pieces of at most about `BATCH_BYTES`."""
    if rows.num_rows == 0:
        return
    step = max(1, min(BATCH_ROWS, BATCH_BYTES * rows.num_rows // max(1, rows.nbytes)))
    for first in range(0, rows.num_rows, step):
        piece = rows.slice(first, step)
        if piece.num_rows > 1 and piece.nbytes > 2 * BATCH_BYTES:
            # Its rows are far larger than the others.
            yield from _cut(piece)
        else:
            yield piece
