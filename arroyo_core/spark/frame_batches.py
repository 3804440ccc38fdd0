"""Frames as rows of Arrow batches, for `mapInArrow`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from arroyo_core.runtime.frames import EMPTY, Frame, FrameKind

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

#: Frames are handed to Spark in batches of about this size.
BATCH_BYTES = 1 << 20


def batches_of(frames: Iterable[Frame]) -> Iterator[pa.RecordBatch]:
    """Gather frames into batches of `FRAME_SCHEMA`; a large frame is alone, so that no offset overflows."""
    gathered: list[Frame] = []
    size = 0
    for frame in frames:
        if gathered and size + frame.payload.size > BATCH_BYTES:
            yield frames_to_batch(gathered)
            gathered, size = [], 0
        gathered.append(frame)
        size += frame.payload.size
        if size >= BATCH_BYTES:
            yield frames_to_batch(gathered)
            gathered, size = [], 0
    if gathered:
        yield frames_to_batch(gathered)


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
