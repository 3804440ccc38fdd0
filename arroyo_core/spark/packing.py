"""Frames as records of a shuffle between RDDs: for each partition of the next wave, some frames together.

PySpark's own `partitionBy` gathers by number, ten elements for a partition and more, and a record of it may become as
large as ten of the largest frames; these are bounded by bytes.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterable, Iterator

from arroyo_core.runtime.frames import Frame

#: Frames for one partition go together up to about this size; a larger one goes alone.
RECORD_BYTES = 1 << 20
#: What waits for all partitions together.
WAITING_BYTES = 16 << 20
#: Counted for a frame beside its payload.
_HEAD_BYTES = 128


def records_of(frames: Iterable[Frame], width: int) -> Iterator[bytes]:
    """Each record as two elements: the number of its partition, and a pickled list of frames.

    Frames for one partition stay in their order. Some only pass through, and may be meant for a wider wave: they go to
    their target modulo `width`.
    """
    packer = _Packer()
    for frame in frames:
        yield from packer.add(frame.target % width, frame)
    yield from packer.drain()


class _Packer:
    def __init__(self) -> None:
        self._waiting: dict[int, list[Frame]] = {}
        self._sizes: dict[int, int] = {}
        self._total = 0

    def add(self, partition: int, frame: Frame) -> Iterator[bytes]:
        size = frame.payload.size + _HEAD_BYTES
        if partition in self._waiting and self._sizes[partition] + size > RECORD_BYTES:
            yield from self._take(partition)
        self._waiting.setdefault(partition, []).append(frame)
        self._sizes[partition] = self._sizes.get(partition, 0) + size
        self._total += size
        if self._sizes[partition] >= RECORD_BYTES:
            yield from self._take(partition)
        elif self._total >= WAITING_BYTES:
            yield from self.drain()

    def drain(self) -> Iterator[bytes]:
        for partition in list(self._waiting):
            yield from self._take(partition)

    def _take(self, partition: int) -> Iterator[bytes]:
        frames = self._waiting.pop(partition)
        self._total -= self._sizes.pop(partition)
        # As the JVM reads it.
        yield struct.pack("!q", partition)
        yield pickle.dumps(frames, protocol=5)
