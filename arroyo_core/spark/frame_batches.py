"""Frames as rows of Arrow batches, for `mapInArrow`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from itertools import pairwise

import numpy as np
import pyarrow as pa

from arroyo_core.errors import ExchangeError
from arroyo_core.runtime.frames import COLUMN, EMPTY, Frame, FrameKind

FRAME_SCHEMA = pa.schema([pa.field(each.name, each.metadata[COLUMN], nullable=False) for each in fields(Frame)])

_SPARK_TYPES = {pa.int8(): "tinyint", pa.int32(): "int", pa.int64(): "bigint", pa.binary(): "binary"}
#: The same as Spark writes it.
FRAME_DDL = ", ".join(f"{column.name} {_SPARK_TYPES[column.type]} not null" for column in FRAME_SCHEMA)

#: All columns but the payload, which shares memory and is not made of numbers.
_HEAD = [column for column in FRAME_SCHEMA if not pa.types.is_binary(column.type)]
_KIND = FRAME_SCHEMA.get_field_index("kind")

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
    columns = [pa.array([getattr(frame, column.name) for frame in frames], column.type) for column in _HEAD]
    columns.append(_payloads([frame.payload for frame in frames]))
    return pa.RecordBatch.from_arrays(columns, schema=FRAME_SCHEMA)


def _payloads(buffers: list[pa.Buffer]) -> pa.Array:
    # One large frame is the usual case, and needs no copy.
    data = buffers[0] if len(buffers) == 1 else pa.py_buffer(b"".join(buffers))
    offsets = np.zeros(len(buffers) + 1, dtype=np.int32)
    np.cumsum([buffer.size for buffer in buffers], out=offsets[1:])
    return pa.Array.from_buffers(pa.binary(), len(buffers), [None, pa.py_buffer(offsets), data])


def frames_of(batch: pa.RecordBatch) -> Iterator[Frame]:
    """The frames of a batch that came from Spark; payloads share its memory. Raises `ExchangeError` for others."""
    numbers = [batch.column(index).to_pylist() for index in range(len(_HEAD))]
    try:
        numbers[_KIND] = [FrameKind(code) for code in numbers[_KIND]]
    except ValueError as error:
        raise ExchangeError(f"a frame is of no kind: {error}") from error
    payload = batch.column(len(_HEAD))
    kind = np.int64 if pa.types.is_large_binary(payload.type) else np.int32
    offsets = np.frombuffer(payload.buffers()[1], dtype=kind)[payload.offset : payload.offset + len(payload) + 1]
    data = payload.buffers()[2]
    buffers = [data.slice(start, end - start) if end > start else EMPTY for start, end in pairwise(offsets.tolist())]
    for values in zip(*numbers, buffers, strict=True):
        yield Frame(*values)
