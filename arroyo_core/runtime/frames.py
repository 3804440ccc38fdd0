"""Frames: what goes through the exchange between two waves.

Spark sees only opaque bytes. A frame goes to subtask `target` of `chain`, for its input `input`,
from subtask `sender` of the chain upstream; `seq` counts from 0 along each such channel, and
`attempt` tells apart two tries to run the same sender.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum

import pyarrow as pa

from arroyo_core.errors import DataError, ExchangeError
from arroyo_core.runtime.slicing import is_indirect

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


#: The column that a field of a frame is, where frames are rows.
COLUMN = "column"
_INT8, _INT32, _INT64 = ({COLUMN: kind} for kind in (pa.int8(), pa.int32(), pa.int64()))


@dataclass(frozen=True, slots=True)
class Frame:
    """The fields are defined here only; the payload is the last one."""

    target: int = field(metadata=_INT32)
    chain: int = field(metadata=_INT32)
    input: int = field(metadata=_INT32)
    sender: int = field(metadata=_INT32)
    attempt: int = field(metadata=_INT64)
    seq: int = field(metadata=_INT64)
    kind: FrameKind = field(metadata=_INT8)
    #: Within one process a batch goes as it is.
    payload: pa.Buffer | pa.RecordBatch = field(metadata={COLUMN: pa.binary()})


EMPTY = pa.py_buffer(b"")


#: What goes through Spark in one piece is an array of the JVM, with a length of 31 bits, and has a head of its own.
MAX_FRAME_BYTES = 2**31 - 2**16


def encode_batch(batch: pa.RecordBatch) -> pa.Buffer:
    """The payload of a data frame."""
    (sent,) = to_wire(batch)
    return encode_wire(sent)


def encode_wire(batch: pa.RecordBatch, edge: str = "to another subtask") -> pa.Buffer:
    """The payload of what `to_wire` gave; raises `DataError`, which names the edge, for rows that cannot be one."""
    payload = batch.serialize()
    if payload.size > MAX_FRAME_BYTES:
        what = "a row" if batch.num_rows == 1 else f"{batch.num_rows} rows"
        raise DataError(
            f"{what} of {payload.size:,} bytes cannot be sent {edge}: a row must stay below "
            f"{MAX_FRAME_BYTES:,} bytes (2 GiB)"
        )
    return payload


def decode_batch(payload: pa.Buffer | pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The rows of a data frame; raises `ExchangeError` where the payload has not the form of such rows.

    What would take a look at each row is not checked: frames are as right as the tasks that sent them.
    """
    wire = wire_schema(schema)
    batch = payload if isinstance(payload, pa.RecordBatch) else _read_batch(payload, wire)
    return batch if wire is schema else _cast(batch, schema)


def _read_batch(payload: pa.Buffer, wire: pa.Schema) -> pa.RecordBatch:
    if payload.address % 8:
        # Behind a payload of odd size; kernels expect aligned values.
        payload = pa.py_buffer(payload.to_pybytes())
    try:
        batch = pa.ipc.read_record_batch(payload, wire)
        # Offsets beyond the values would be followed out of the frame.
        batch.validate()
    except (pa.ArrowException, OSError, EOFError) as error:
        raise ExchangeError(f"a frame of {payload.size} bytes does not hold rows of its channel: {error}") from error
    return batch


def to_wire(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batch as it is sent, with the types of `wire_schema`; in parts where a dictionary repeats more than 2 GiB."""
    if not any(is_indirect(kind) for kind in batch.schema.types):
        yield batch
        return
    try:
        sent = _cast(batch, pa.schema([_wire_field(field) for field in batch.schema]))
    except pa.ArrowInvalid:
        if batch.num_rows <= 1:
            raise
    else:
        yield sent
        return
    half = batch.num_rows // 2
    yield from to_wire(batch.slice(0, half))
    yield from to_wire(batch.slice(half))


def wire_schema(schema: pa.Schema) -> pa.Schema:
    """How columns are sent; the very same schema where all are sent as they are.

    Dictionaries and views are not: a lone message cannot carry a dictionary, and a slice of a view would carry all that
    its parent refers to.
    """
    known = _wires.get(id(schema))
    if known is None or known[0] is not schema:
        is_plain = not any(is_indirect(kind) for kind in schema.types)
        if len(_wires) >= _WIRES:
            _wires.clear()
        known = _wires[id(schema)] = (schema, schema if is_plain else pa.schema([_wire_field(f) for f in schema]))
    return known[1]


#: By identity, since comparing schemas would take as long as decoding a small frame.
_wires: dict[int, tuple[pa.Schema, pa.Schema]] = {}
_WIRES = 256


def _wire_field(field: pa.Field) -> pa.Field:
    return field.with_type(_wire_type(field.type))


def _wire_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _wire_type(kind.value_type)
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    if pa.types.is_struct(kind):
        return pa.struct([_wire_field(field) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_wire_field(kind.key_field), _wire_field(kind.item_field), keys_sorted=kind.keys_sorted)
    if pa.types.is_list(kind):
        return pa.list_(_wire_field(kind.value_field))
    if pa.types.is_large_list(kind):
        return pa.large_list(_wire_field(kind.value_field))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_wire_field(kind.value_field), kind.list_size)
    return kind


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


class FrameWriter:
    """Holds the frames that a task has made until they are handed on."""

    def __init__(self, near: int | None = None) -> None:
        """`near` is the target that is in this process, if there is one: rows for it are not serialised."""
        self.near = near
        self._frames: list[Frame] = []

    def write(self, frame: Frame) -> None:
        self._frames.append(frame)

    @property
    def is_empty(self) -> bool:
        return not self._frames

    def drain(self) -> list[Frame]:
        """The frames since the last call."""
        frames, self._frames = self._frames, []
        return frames
