"""What messages of Arrow IPC unpack to, as they say themselves: looked at before Arrow believes it.

Each buffer of a compressed batch begins with the size that it unpacks to, and so much memory is taken for it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

_CONTINUATION = b"\xff\xff\xff\xff"
#: What the magic of a file takes, before its messages.
_FILE_START = 8
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
_BUFFER = struct.Struct("<qq")


def unpacked_sizes(data: memoryview, *, is_file: bool) -> Iterator[int]:
    """For each batch in turn, also of dictionaries, what its compressed buffers say; up to what is no message."""
    # Buffers of Arrow have signed bytes.
    data = data.cast("B")
    at = _FILE_START if is_file else 0
    while at + 8 <= len(data):
        try:
            found, after = _message_at(data, at)
        except (struct.error, IndexError):
            return
        yield found
        if after <= at:
            return
        at = after


def _message_at(data: memoryview, at: int) -> tuple[int, int]:
    """What a message unpacks to, and where the next begins; there is none at the end of a stream."""
    start = at + 4 if data[at : at + 4] == _CONTINUATION else at
    (size,) = struct.unpack_from("<i", data, start)
    if size <= 0:
        return 0, at
    body = start + 4 + size
    message = _Table.root(data[start + 4 : body])
    return _unpacked(message, data, body), body + max(0, message.int64(3))


def _unpacked(message: _Table, data: memoryview, body: int) -> int:
    kind = message.uint8(1)
    batch = message.table(2) if kind in (_DICTIONARY_BATCH, _RECORD_BATCH) else None
    if batch is not None and kind == _DICTIONARY_BATCH:
        batch = batch.table(1)
    if batch is None or batch.table(3) is None:
        return 0
    found = 0
    for offset, length in batch.buffers(2):
        if length >= 8 and offset >= 0:
            (size,) = struct.unpack_from("<q", data, body + offset)
            # -1: this one is as it is.
            found += size if size >= 0 else length
    return found


class _Table:
    """A table of a flatbuffer; fields have numbers."""

    def __init__(self, data: memoryview, at: int) -> None:
        self._data = data
        self._at = at
        self._fields = at - struct.unpack_from("<i", data, at)[0]

    @classmethod
    def root(cls, data: memoryview) -> _Table:
        return cls(data, struct.unpack_from("<I", data, 0)[0])

    def uint8(self, field: int) -> int:
        at = self._place(field)
        return self._data[at] if at else 0

    def int64(self, field: int) -> int:
        at = self._place(field)
        found: int = struct.unpack_from("<q", self._data, at)[0] if at else 0
        return found

    def table(self, field: int) -> _Table | None:
        at = self._place(field)
        return _Table(self._data, at + struct.unpack_from("<I", self._data, at)[0]) if at else None

    def buffers(self, field: int) -> list[tuple[int, int]]:
        at = self._place(field)
        if not at:
            return []
        at += struct.unpack_from("<I", self._data, at)[0]
        (count,) = struct.unpack_from("<I", self._data, at)
        return list(_BUFFER.iter_unpack(self._data[at + 4 : at + 4 + count * _BUFFER.size]))

    def _place(self, field: int) -> int:
        """Where a field is; 0 where it is not there."""
        (size,) = struct.unpack_from("<H", self._data, self._fields)
        slot = 4 + 2 * field
        offset: int = struct.unpack_from("<H", self._data, self._fields + slot)[0] if slot < size else 0
        return self._at + offset if offset else 0
