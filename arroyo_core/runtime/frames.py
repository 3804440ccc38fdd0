"""Frames: the rows of the exchange between two waves.

Spark sees only opaque rows. A frame goes to subtask `target` of `chain`, for its input `input`,
from subtask `sender` of the chain upstream; `seq` counts from 0 along each such channel, and
`attempt` tells apart two tries to run the same sender.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import pyarrow as pa

#: Frames for the driver pass through every later wave.
DRIVER_CHAIN = -1

FRAME_SCHEMA = pa.schema(
    [
        pa.field("target", pa.int32(), nullable=False),
        pa.field("chain", pa.int32(), nullable=False),
        pa.field("input", pa.int32(), nullable=False),
        pa.field("sender", pa.int32(), nullable=False),
        pa.field("attempt", pa.int64(), nullable=False),
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("kind", pa.int8(), nullable=False),
        pa.field("payload", pa.binary(), nullable=False),
    ]
)

#: The same as Spark writes it.
FRAME_DDL = (
    "target int not null, chain int not null, input int not null, sender int not null, attempt bigint not null, "
    "seq bigint not null, kind tinyint not null, payload binary not null"
)

#: Output rows are handed to Spark in batches of about this size.
DRAIN_BYTES = 1 << 20


class FrameKind(IntEnum):
    """What a payload holds."""

    #: A record batch, as an Arrow IPC message without its schema, which the plan knows.
    DATA = 0
    #: Eight bytes of event time, or nothing for idle.
    WATERMARK = 1
    #: The last frame of a channel in an epoch; `seq` is the number of frames before it.
    BARRIER = 2
    #: The sender has ended for good.
    END_OF_DATA = 3
    STOP = 4
    #: A serialised `ChainReport` for the driver.
    REPORT = 5


@dataclass(frozen=True, slots=True)
class Frame:
    target: int
    chain: int
    input: int
    sender: int
    attempt: int
    seq: int
    kind: FrameKind
    payload: pa.Buffer


EMPTY = pa.py_buffer(b"")


def encode_batch(batch: pa.RecordBatch) -> pa.Buffer:
    """The payload of a data frame. Dictionaries are decoded: a lone message cannot carry them."""
    return without_dictionaries(batch).serialize()


def decode_batch(payload: pa.Buffer, schema: pa.Schema) -> pa.RecordBatch:
    if payload.address % 8:
        # Behind a payload of odd size; kernels expect aligned values.
        payload = pa.py_buffer(payload.to_pybytes())
    return pa.ipc.read_record_batch(payload, schema)


def without_dictionaries(batch: pa.RecordBatch) -> pa.RecordBatch:
    if not any(pa.types.is_dictionary(field.type) for field in batch.schema):
        return batch
    columns = [
        column.dictionary_decode() if pa.types.is_dictionary(column.type) else column for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


class FrameWriter:
    """Gathers frames and gives them out as record batches of `FRAME_SCHEMA`."""

    def __init__(self) -> None:
        self._frames: list[Frame] = []
        self._bytes = 0

    def write(self, frame: Frame) -> None:
        self._frames.append(frame)
        self._bytes += frame.payload.size

    def drain(self, *, is_last: bool = False) -> Iterator[pa.RecordBatch]:
        """The frames so far, once there are enough of them."""
        if self._frames and (is_last or self._bytes >= DRAIN_BYTES):
            frames, self._frames, self._bytes = self._frames, [], 0
            yield frames_to_batch(frames)


def frames_to_batch(frames: list[Frame]) -> pa.RecordBatch:
    columns = [
        pa.array([frame.target for frame in frames], pa.int32()),
        pa.array([frame.chain for frame in frames], pa.int32()),
        pa.array([frame.input for frame in frames], pa.int32()),
        pa.array([frame.sender for frame in frames], pa.int32()),
        pa.array([frame.attempt for frame in frames], pa.int64()),
        pa.array([frame.seq for frame in frames], pa.int64()),
        pa.array([int(frame.kind) for frame in frames], pa.int8()),
        _payloads([frame.payload for frame in frames]),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=FRAME_SCHEMA)


def _payloads(buffers: list[pa.Buffer]) -> pa.Array:
    # One large frame is the usual case, and needs no copy.
    data = buffers[0] if len(buffers) == 1 else pa.py_buffer(b"".join(buffers))
    offsets = np.zeros(len(buffers) + 1, dtype=np.int32)
    np.cumsum([buffer.size for buffer in buffers], out=offsets[1:])
    return pa.Array.from_buffers(pa.binary(), len(buffers), [None, pa.py_buffer(offsets), data])


def frames_of(batch: pa.RecordBatch) -> Iterator[Frame]:
    """The frames of a batch that came from Spark; payloads share its memory."""
    numbers = [batch.column(index).to_pylist() for index in range(7)]
    payload = batch.column(7)
    kind = np.int64 if pa.types.is_large_binary(payload.type) else np.int32
    offsets = np.frombuffer(payload.buffers()[1], dtype=kind)[payload.offset : payload.offset + len(payload) + 1]
    data = payload.buffers()[2]
    for row, (target, chain, index, sender, attempt, seq, code) in enumerate(zip(*numbers, strict=True)):
        start, end = int(offsets[row]), int(offsets[row + 1])
        buffer = data.slice(start, end - start) if end > start else EMPTY
        yield Frame(target, chain, index, sender, attempt, seq, FrameKind(code), buffer)
