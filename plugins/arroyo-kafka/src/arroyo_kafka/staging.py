"""The messages of an epoch between its checkpoint and its commit: a compressed Arrow stream for each subtask.

A stream is made of batches of some megabytes. A commit reads one after the other, and counts how many are done, so
that one that was interrupted goes on at the batch where it was.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec
import pyarrow as pa

from arroyo_core.errors import StateError, UnsafePathError

#: Messages are gathered to batches of about this size: large enough to compress well.
BATCH_BYTES = 4 << 20
BATCH_ROWS = 16384
VERSION = 1
_METADATA = b"arroyo_kafka"


class Staged(msgspec.Struct, frozen=True, kw_only=True):
    """What the messages of a subtask have in common; kept with them, since settings may change before a commit."""

    #: The topic of all messages; empty where each has its own.
    topic: str
    #: Names of headers.
    headers: tuple[str, ...] = ()
    #: Of the driver whose epoch it was.
    generation: int = 0
    #: When the first message was staged, by the job's clock.
    time_us: int = 0
    #: Whether an epoch before this one has staged messages, in this incarnation of the job.
    has_earlier: bool = False
    version: int = VERSION


class StagedWriter:
    """Writes the stream of one subtask; holds it, compressed, and one batch that is not yet full."""

    def __init__(self, schema: pa.Schema, staged: Staged) -> None:
        self._schema = schema.with_metadata({_METADATA: msgspec.json.encode(staged)})
        self._out = io.BytesIO()
        self._stream: pa.ipc.RecordBatchStreamWriter | None = None
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        self._waiting_rows = 0

    def write(self, messages: pa.RecordBatch) -> None:
        for batch in _cut(messages):
            if self._waiting_bytes + batch.nbytes > BATCH_BYTES or self._waiting_rows + batch.num_rows > BATCH_ROWS:
                self._write_batch()
            self._waiting.append(batch)
            self._waiting_bytes += batch.nbytes
            self._waiting_rows += batch.num_rows

    def close(self) -> bytes:
        """The stream; empty where there was no message."""
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
        self._stream.write_batch(pa.concat_batches(self._waiting))
        self._waiting.clear()
        self._waiting_bytes = self._waiting_rows = 0


@dataclass(frozen=True, slots=True)
class StagedBatch:
    """One batch of an epoch, and what its messages have in common."""

    messages: pa.RecordBatch
    staged: Staged


class StagedEpoch:
    """What all subtasks staged in one epoch: batches in an order that is always the same."""

    def __init__(self, streams: Mapping[int, bytes]) -> None:
        self._streams = {subtask: streams[subtask] for subtask in sorted(streams) if streams[subtask]}
        self._first = [_open(stream)[1] for stream in self._streams.values()]

    @property
    def is_empty(self) -> bool:
        return not self._streams

    @property
    def generation(self) -> int:
        return max(staged.generation for staged in self._first)

    @property
    def time_us(self) -> int:
        return min(staged.time_us for staged in self._first)

    @property
    def has_earlier(self) -> bool:
        return any(staged.has_earlier for staged in self._first)

    @property
    def topics(self) -> frozenset[str]:
        """The topics that all messages of a subtask have in common."""
        return frozenset(staged.topic for staged in self._first if staged.topic)

    def check_topic(self, topic: str) -> None:
        """Raise `UnsafePathError` if messages are for another topic: others may write to the checkpoint storage."""
        for staged in self._first:
            if staged.topic != topic:
                raise UnsafePathError(
                    f"commit data have messages for topic {staged.topic!r}, and the sink writes {topic!r}: nothing was "
                    "sent. Who can write to the checkpoint URL besides this job?"
                )

    def batches(self, first: int = 0) -> Iterator[StagedBatch]:
        """Batch after batch, each unpacked when it is asked for, without the first so many."""
        number = 0
        for stream in self._streams.values():
            reader, staged = _open(stream)
            for messages in reader:
                if number >= first:
                    yield StagedBatch(messages, staged)
                number += 1


def _open(stream: bytes) -> tuple[pa.ipc.RecordBatchStreamReader, Staged]:
    reader = pa.ipc.open_stream(pa.BufferReader(stream))
    staged = msgspec.json.decode(reader.schema.metadata[_METADATA], type=Staged)
    if staged.version > VERSION:
        raise StateError(
            f"messages were staged by a newer arroyo-kafka (version {staged.version} of the stream, this one reads "
            f"{VERSION}): finish the commit with that one"
        )
    return reader, staged


def _cut(messages: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batch in pieces of at most about `BATCH_BYTES`."""
    if messages.num_rows == 0:
        return
    rows = max(1, min(BATCH_ROWS, BATCH_BYTES * messages.num_rows // max(1, messages.nbytes)))
    for start in range(0, messages.num_rows, rows):
        yield messages.slice(start, rows)
