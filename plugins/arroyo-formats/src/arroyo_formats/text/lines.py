"""Cuts text files into blocks of whole lines, whatever the byte range asked for.

A line belongs to the split in which its first byte lies. Every position is a byte of the
(decompressed) file, so that a split can be continued anywhere and splits never share a line.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from arroyo_core.errors import DataError
from arroyo_formats.files import DamagedFileError
from arroyo_formats.limits import LINE_BYTES
from arroyo_formats.text.compressed import compression_of, open_text

BLOCK_BYTES = 4 * 2**20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

Ends = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines that begin at byte `offset` of a file."""

    offset: int
    data: bytes


def line_ends(data: bytes, *, quote_aware: bool) -> Ends:
    """The place after each line; with `quote_aware` a line end inside double quotes is part of a value.

    What follows the last line end is a line too.
    """
    codes = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(codes == 10)
    if quote_aware:
        # A doubled quote inside a value counts twice, so parity alone tells inside from outside.
        quotes = np.flatnonzero(codes == 34)
        ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
    ends = ends.astype(np.int64) + 1
    if len(data) and (not len(ends) or ends[-1] != len(data)):
        ends = np.append(ends, len(data))
    return ends


def next_line(fs: Any, path: str, offset: int) -> int:
    """The first byte at or after `offset` that begins a line; the size of the file where none does."""
    if offset == 0:
        return 0
    with open_text(fs, path) as stream:
        stream.seek(offset - 1)
        position = offset - 1
        while chunk := stream.read(2**16):
            end = chunk.find(b"\n")
            if end >= 0:
                return position + end + 1
            position += len(chunk)
    return position


def read_blocks(
    fs: Any, path: str, *, start: int, stop: int | None, max_lines: int, quote_aware: bool
) -> Generator[Block]:
    """Blocks of the lines that begin in `start..stop`; `start` must be the beginning of a line.

    A block has at most `max_lines` lines and, unless one line is longer, about `BLOCK_BYTES`. Raises `DamagedFileError`
    after the whole lines before the damage.
    """
    cutter = _Cutter(stop=stop, max_lines=max_lines, quote_aware=quote_aware)
    with open_text(fs, path) as stream:
        _skip(stream, start, is_compressed=compression_of(path) is not None)
        offset, held, is_ended, wanted = start, b"", False, BLOCK_BYTES
        damage: DamagedFileError | None = None
        while stop is None or offset < stop:
            if not is_ended and damage is None and len(held) < wanted:
                try:
                    chunk = stream.read(wanted - len(held))
                    is_ended = not chunk
                    held = held + chunk if held else chunk
                except DamagedFileError as error:
                    damage = error
            if not held and damage is None:
                return
            cut = cutter.cut(held, offset=offset, is_ended=is_ended)
            if cut == 0:
                if damage is not None:
                    raise damage
                problem = LINE_BYTES.problem(len(held))
                if problem is not None:
                    # More likely the file is not text at all.
                    raise DataError(f"{path}: in a line at byte {offset} {problem}")
                # Twice as much each time: what is held is looked through again.
                wanted = 2 * len(held) + BLOCK_BYTES
                continue
            yield Block(offset, held[:cut])
            offset += cut
            held = held[cut:]
            wanted = BLOCK_BYTES


@dataclass(frozen=True, slots=True)
class _Cutter:
    """Decides how much of what is read makes a block."""

    stop: int | None
    max_lines: int
    quote_aware: bool

    def cut(self, held: bytes, *, offset: int, is_ended: bool) -> int:
        """The length of the next block; 0 where more must be read first."""
        limit = len(held)
        if self.stop is not None and offset + len(held) >= self.stop:
            end = held.find(b"\n", self.stop - 1 - offset)
            limit = end + 1 if end >= 0 else limit
        if self.quote_aware:
            return self._cut_quoted(held, is_ended=is_ended)
        cut = limit if is_ended and limit == len(held) else held.rfind(b"\n", 0, limit) + 1
        if held.count(b"\n", 0, cut) >= self.max_lines:
            return int(line_ends(held[:cut], quote_aware=False)[self.max_lines - 1])
        return cut

    def _cut_quoted(self, held: bytes, *, is_ended: bool) -> int:
        ends = line_ends(held, quote_aware=True)
        if not is_ended:
            # The last one is the end of what is read, unless a line happens to end there outside quotes.
            ends = ends[:-1]
        return int(ends[min(len(ends), self.max_lines) - 1]) if len(ends) else 0


class LineNumbers:
    """The numbers of lines in blocks that are read one after the other; only asked for when a line is bad."""

    def __init__(self, fs: Any, path: str, start: int) -> None:
        """`start` is the byte where the first block begins."""
        self._fs = fs
        self._path = path
        self._offset = start
        #: Of the first line of the next block; None while nobody has asked.
        self._next = 1 if start == 0 else None

    def in_block(self, data: bytes, starts: Sequence[int]) -> Iterator[int]:
        """The numbers of the lines of the next block that begin at these places of it, which rise."""
        line, position = self.next_line(), 0
        for start in starts:
            line += data.count(b"\n", position, start)
            position = start
            yield line

    def pass_block(self, block: Block) -> None:
        self._offset = block.offset + len(block.data)
        if self._next is not None:
            self._next += block.data.count(b"\n")

    def next_line(self) -> int:
        """The number of the line after those that are passed; counted from 1."""
        if self._next is None:
            self._next = 1 + self._count(self._offset)
        return self._next

    def _count(self, stop: int) -> int:
        position, lines = 0, 0
        with open_text(self._fs, self._path) as stream:
            while position < stop and (chunk := stream.read(min(BLOCK_BYTES, stop - position))):
                position += len(chunk)
                lines += chunk.count(b"\n")
        return lines


def _skip(stream: BinaryIO, offset: int, *, is_compressed: bool) -> None:
    if not is_compressed:
        stream.seek(offset)
        return
    while offset > 0 and (chunk := stream.read(min(offset, BLOCK_BYTES))):
        offset -= len(chunk)
