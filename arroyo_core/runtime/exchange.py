"""The two ends of an exchange: senders cut batches by target, receivers check that nothing is missing."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from arroyo_core.api import SignalMessage, Watermark
from arroyo_core.api.hashing import hash_batch, subtasks_of
from arroyo_core.errors import ExchangeError
from arroyo_core.runtime.frames import EMPTY, Frame, FrameKind, FrameWriter, encode_wire, to_wire
from arroyo_core.runtime.slicing import cut
from arroyo_core.runtime.watermarks import UNSET, Channel, Level

#: Small batches for one target are joined into frames of about this size, smaller ones where there are many targets;
#: large ones are cut to it.
FRAME_BYTES = 1 << 20
_LEAST_FRAME_BYTES = 64 << 10
_UNSENT_BYTES = 4 << 20
#: What waits to be sent may be slices, which keep all of the batch that they were cut from in memory. Batches that come
#: to more than this are not waited with.
_HELD_BYTES = 64 << 20
#: Up to so many targets one pass for each is faster than sorting rows by target.
_PASSES = 4

_EVENT_TIME = struct.Struct("<q")
_FINAL_KINDS = {SignalMessage.END_OF_DATA: FrameKind.END_OF_DATA, SignalMessage.STOP: FrameKind.STOP}


class Router(ABC):
    """Says which rows go to which target."""

    @abstractmethod
    def route(self, batch: pa.RecordBatch) -> Iterable[tuple[int, pa.RecordBatch]]: ...


class ForwardRouter(Router):
    """Everything to one target."""

    def __init__(self, target: int) -> None:
        self._target = target

    def route(self, batch: pa.RecordBatch) -> Iterable[tuple[int, pa.RecordBatch]]:
        return [(self._target, batch)]


class ShuffleRouter(Router):
    """By the stable hash of the keys."""

    def __init__(self, keys: tuple[str, ...], parallelism: int) -> None:
        self._keys = keys
        self._parallelism = parallelism

    def route(self, batch: pa.RecordBatch) -> Iterable[tuple[int, pa.RecordBatch]]:
        if self._parallelism == 1 or not self._keys:
            return [(0, batch)]
        return split(batch, subtasks_of(hash_batch(batch, self._keys), self._parallelism), self._parallelism)


class RebalanceRouter(Router):
    """Contiguous slices, each round beginning one target further on so that small batches spread too."""

    def __init__(self, sender: int, parallelism: int) -> None:
        self._next = sender % parallelism
        self._parallelism = parallelism

    def route(self, batch: pa.RecordBatch) -> Iterable[tuple[int, pa.RecordBatch]]:
        size = max(1, -(-batch.num_rows // self._parallelism))
        slices = []
        for start in range(0, batch.num_rows, size):
            slices.append((self._next, batch.slice(start, size)))
            self._next = (self._next + 1) % self._parallelism
        return slices


def split(batch: pa.RecordBatch, targets: npt.NDArray[np.int32], parallelism: int) -> list[tuple[int, pa.RecordBatch]]:
    """The rows of each target in their order."""
    return _split_by_passes(batch, targets, parallelism) if parallelism <= _PASSES else _split_by_sort(batch, targets)


def _split_by_passes(
    batch: pa.RecordBatch, targets: npt.NDArray[np.int32], parallelism: int
) -> list[tuple[int, pa.RecordBatch]]:
    parts = []
    for target in range(parallelism):
        rows = np.flatnonzero(targets == target)
        if len(rows) == batch.num_rows:
            return [(target, batch)]
        if len(rows):
            parts.append((target, batch.take(pa.array(rows))))
    return parts


def _split_by_sort(batch: pa.RecordBatch, targets: npt.NDArray[np.int32]) -> list[tuple[int, pa.RecordBatch]]:
    """Slices of the sorted rows: the time depends little on the number of targets."""
    counts = np.bincount(targets)
    found = np.flatnonzero(counts)
    if len(found) == 1:
        return [(int(found[0]), batch)]
    # Of 16 bits, numpy sorts by counting; a parallelism is at most 4096.
    moved = batch.take(pa.array(np.argsort(targets.astype(np.uint16), kind="stable")))
    ends = np.cumsum(counts)
    return [
        (target, moved.slice(end - count, count))
        for target, end, count in zip(found.tolist(), ends[found].tolist(), counts[found].tolist(), strict=True)
    ]


@dataclass(slots=True)
class _Outbox:
    batches: list[pa.RecordBatch] = field(default_factory=list)
    #: About: what the rows would have if all rows of their batches were alike.
    bytes: float = 0
    seq: int = 0
    sent_level: Level = UNSET


class EdgeSender:
    """One subtask's end of one edge into a later wave.

    A watermark waits for the rows before it to fill a frame: the receiver runs after this wave
    has ended, so nothing is delayed by it, and it never overtakes those rows. Of several that wait, the last event time
    is sent, and idleness if that came last.
    """

    def __init__(
        self,
        writer: FrameWriter,
        router: Router,
        *,
        chain: int,
        input: int,
        sender: int,
        attempt: int,
        targets: Iterable[int],
        edge: str = "to another subtask",
    ) -> None:
        """`edge` is for errors: from where to where."""
        self._writer = writer
        self._router = router
        self._chain = chain
        self._input = input
        self._sender = sender
        self._attempt = attempt
        self._edge = edge
        self._outboxes = {target: _Outbox() for target in targets}
        share = _UNSENT_BYTES // max(1, len(self._outboxes))
        self._frame_bytes = min(FRAME_BYTES, max(_LEAST_FRAME_BYTES, share))
        #: As far as it was told in this epoch.
        self._level = UNSET
        #: Of the batches since nothing waited.
        self._held_bytes = 0

    def send(self, batch: pa.RecordBatch) -> None:
        """Raises `DataError` for a row that is too large to be sent."""
        for part in to_wire(batch):
            self._send(part)

    def _send(self, batch: pa.RecordBatch) -> None:
        size = batch.nbytes
        if self._held_bytes + size > _HELD_BYTES:
            self.flush()
        self._held_bytes += size
        row_bytes = size / max(1, batch.num_rows)
        for target, part in self._router.route(batch):
            self._add(target, part, part.num_rows * row_bytes)

    def send_watermark(self, watermark: Watermark) -> None:
        self._level = self._level.after(watermark)

    def finish(self, final: SignalMessage | None) -> dict[int, int]:
        """Send what is left and the barrier; returns the number of frames per target."""
        counts = {}
        self.flush()
        for target, outbox in self._outboxes.items():
            if final is not None:
                self._write(target, outbox, _FINAL_KINDS[final], EMPTY)
            counts[target] = outbox.seq
            self._write(target, outbox, FrameKind.BARRIER, EMPTY)
        return counts

    def _add(self, target: int, part: pa.RecordBatch, size: float) -> None:
        outbox = self._outboxes[target]
        if outbox.batches and outbox.bytes + size > FRAME_BYTES:
            self._flush(target, outbox)
        outbox.batches.append(part)
        outbox.bytes += size
        if outbox.bytes >= self._frame_bytes:
            self._flush(target, outbox)

    def flush(self) -> None:
        """Send what waits."""
        for target, outbox in self._outboxes.items():
            self._flush(target, outbox)
        self._held_bytes = 0

    def _flush(self, target: int, outbox: _Outbox) -> None:
        if outbox.batches:
            # All of them are of batches that come to `_HELD_BYTES`, or there is only one: offsets do not overflow.
            whole = outbox.batches[0] if len(outbox.batches) == 1 else pa.concat_batches(outbox.batches)
            outbox.batches, outbox.bytes = [], 0
            for part in cut(whole, FRAME_BYTES):
                payload = part if target == self._writer.near else encode_wire(part, self._edge)
                self._write(target, outbox, FrameKind.DATA, payload)
        for watermark in self._level.since(outbox.sent_level):
            self._write(target, outbox, FrameKind.WATERMARK, encode_watermark(watermark))
        outbox.sent_level = self._level

    def _write(self, target: int, outbox: _Outbox, kind: FrameKind, payload: pa.Buffer | pa.RecordBatch) -> None:
        frame = Frame(target, self._chain, self._input, self._sender, self._attempt, outbox.seq, kind, payload)
        outbox.seq += 1
        self._writer.write(frame)


def encode_watermark(watermark: Watermark) -> pa.Buffer:
    if watermark.event_time_us is None:
        return EMPTY
    return pa.py_buffer(_EVENT_TIME.pack(watermark.event_time_us))


def decode_watermark(payload: pa.Buffer) -> Watermark:
    """Raises `ExchangeError` for what is no watermark."""
    if payload.size == 0:
        return Watermark.idle()
    if payload.size != _EVENT_TIME.size:
        raise ExchangeError(f"a watermark has {payload.size} bytes, not {_EVENT_TIME.size}")
    return Watermark.event_time(*_EVENT_TIME.unpack(payload))


@dataclass(slots=True)
class Inbox:
    """What has come along one channel in this epoch."""

    attempt: int = 0
    frames: int = 0
    is_complete: bool = False


class Receiver:
    """Checks the channels of one subtask: one attempt each, no gap, all of them to their barrier."""

    def __init__(self, chain: int, subtask: int, channels: Iterable[Channel]) -> None:
        self._name = f"chain {chain}, subtask {subtask}"
        self.inboxes = {channel: Inbox() for channel in channels}

    def accept(self, frame: Frame) -> None:
        """Count a frame; raises `ExchangeError` if it does not continue its channel."""
        inbox = self.inboxes.get((frame.input, frame.sender))
        if inbox is None:
            raise ExchangeError(f"{self._name}: a frame of unknown sender {frame.sender} on input {frame.input}")
        if inbox.frames == 0:
            inbox.attempt = frame.attempt
        if frame.attempt != inbox.attempt or frame.seq != inbox.frames or inbox.is_complete:
            raise ExchangeError(
                f"{self._name}: sender {frame.sender} of input {frame.input} sent frame {frame.seq} of attempt "
                f"{frame.attempt}, expected frame {inbox.frames} of attempt {inbox.attempt}"
            )
        if frame.kind is FrameKind.BARRIER:
            inbox.is_complete = True
        else:
            inbox.frames += 1

    def check_complete(self) -> None:
        """Raises `ExchangeError` unless every sender delivered its barrier."""
        missing = [channel for channel, inbox in self.inboxes.items() if not inbox.is_complete]
        if missing:
            text = ", ".join(f"sender {sender} of input {number}" for number, sender in missing)
            raise ExchangeError(f"{self._name}: no barrier from {text}")
