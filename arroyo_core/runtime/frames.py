"""Frames: what goes through the exchange between two waves.

Spark sees only opaque bytes. A frame goes to subtask `target` of `chain`, for its input `input`,
from subtask `sender` of the chain upstream; `seq` counts from 0 along each such channel, and
`attempt` tells apart two tries to run the same sender.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import pyarrow as pa

#: Frames for the driver pass through every later wave.
DRIVER_CHAIN = -1


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
    """Holds the frames that a task has made until they are handed on."""

    def __init__(self) -> None:
        self._frames: list[Frame] = []

    def write(self, frame: Frame) -> None:
        self._frames.append(frame)

    def drain(self) -> list[Frame]:
        """The frames since the last call."""
        frames, self._frames = self._frames, []
        return frames
