"""Files that grow: logs to which a program appends lines.

What was appended is read as a part of the file that follows the one before: from the end of its last whole line to the
end of the last one that is there now. A file is known by its inode, where there is one, and by its first bytes: so one
that was truncated, or replaced by another of the same name, is read again from its start. One that was renamed goes on.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from arroyo_filesystem.listing import File

#: So many of the first bytes tell one file from another.
HEAD_BYTES = 256
CHUNK_BYTES = 2**16


@dataclass(frozen=True, slots=True)
class Appended:
    """Whole lines of a file, from a byte on."""

    file: File
    start: int
    stop: int
    #: Of the file's first bytes.
    head: str


def inode_of(identity: str) -> str:
    """The part of a file's identity that stays when it grows; empty where the storage has none."""
    found = identity.partition(" ")[0]
    return found if found.startswith("ino=") else ""


def find_appended(fs: Any, file: File, *, start: int, head: str) -> Appended:
    """What a file has from a byte on, which is the end of a line or 0; `head` is what is known of it, or empty.

    Raises `FileNotFoundError`, or `ValueError` where its first bytes are others now.
    """
    with fs.open(file.path, "rb") as stream:
        if head and head_of(stream, int(head.partition(":")[0])) != head:
            raise ValueError("the first bytes are others")
        stop = _end_of_lines(stream, start, file.size)
        if _head_bytes(head) < min(stop, HEAD_BYTES):
            head = head_of(stream, min(stop, HEAD_BYTES))
    return Appended(file, start, stop, head)


def has_head(fs: Any, path: str, head: str) -> bool:
    """Whether a file begins as another one did, of which something is known."""
    if not head:
        return False
    try:
        with fs.open(path, "rb") as stream:
            return head_of(stream, _head_bytes(head)) == head
    except FileNotFoundError:
        return False


def head_of(stream: Any, size: int) -> str:
    """The number and a digest of the first bytes; of fewer, where there are not so many."""
    stream.seek(0)
    data = stream.read(size)
    return f"{len(data)}:{hashlib.blake2b(data, digest_size=8).hexdigest()}"


def _head_bytes(head: str) -> int:
    return int(head.partition(":")[0] or 0)


def _end_of_lines(stream: Any, start: int, stop: int) -> int:
    """The end of the last whole line that ends in `start..stop`; `start` where none does."""
    while stop > start:
        begin = max(start, stop - CHUNK_BYTES)
        stream.seek(begin)
        found = stream.read(stop - begin).rfind(b"\n")
        if found >= 0:
            return int(begin + found + 1)
        stop = begin
    return start
