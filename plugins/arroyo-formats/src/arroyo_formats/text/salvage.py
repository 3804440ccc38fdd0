"""Parses many texts at once, and finds the bad ones among them where that fails.

Good texts cost nothing here. What bad ones cost is in proportion to their number: parsers often say which row is bad;
else it is found by halves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from arroyo_formats.format import Indices
from arroyo_formats.text.lines import Ends, line_ends

#: How many texts are parsed together at first, at least and at most while bad ones are looked for.
FIRST_WINDOW, LEAST_WINDOW, GREATEST_WINDOW = 256, 16, 2**16
_WHITE_SPACE = b" \t\r\n"


class BadTextError(Exception):
    """Text that does not parse; `row` is the one to blame among those before it, where the parser says so."""

    def __init__(self, message: str, row: int | None = None) -> None:
        super().__init__(message)
        self.row = row


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts one after the other, each with a line end (which the last may lack); `ends` is the place after each."""

    data: bytes
    ends: Ends

    @staticmethod
    def of_lines(data: bytes, *, quote_aware: bool) -> Texts:
        return Texts(data, line_ends(data, quote_aware=quote_aware))

    @staticmethod
    def of_messages(messages: Sequence[bytes]) -> Texts:
        lengths = np.fromiter(map(len, messages), dtype=np.int64, count=len(messages))
        return Texts(b"\n".join([*messages, b""]), np.cumsum(lengths + 1))

    def __len__(self) -> int:
        return len(self.ends)

    def start(self, index: int) -> int:
        return int(self.ends[index - 1]) if index else 0

    def text(self, index: int) -> bytes:
        """One of them, with its line end."""
        return self.data[self.start(index) : int(self.ends[index])]

    def take(self, indices: Indices) -> Texts:
        """Some of them, in this order; indices rise."""
        if not len(indices):
            return Texts(b"", np.zeros(0, dtype=np.int64))
        first, last = int(indices[0]), int(indices[-1])
        if last - first + 1 == len(indices):
            start = self.start(first)
            return Texts(self.data[start : int(self.ends[last])], self.ends[first : last + 1] - start)
        lengths = np.diff(self.ends, prepend=0)[indices]
        # Arrow copies values faster than Python cuts and joins them.
        values = self.array().take(pa.array(indices)).buffers()[2]
        ends = np.cumsum(lengths)
        return Texts(values.to_pybytes()[: int(ends[-1])], ends)

    def array(self) -> pa.LargeBinaryArray:
        """The texts as values, without a copy."""
        offsets = np.concatenate([[0], self.ends]).astype(np.int64)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(self.data)]
        return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(self.ends), buffers)

    def blank(self) -> Indices:
        """Those with nothing but a line end."""
        lengths = np.diff(self.ends, prepend=0)
        short = np.flatnonzero(lengths <= 2)
        if not len(short):
            return short
        lengths = lengths[short]
        first = np.frombuffer(self.data, dtype=np.uint8)[self.ends[short] - lengths]
        found: Indices = short[(lengths == 1) & (first == 10) | (lengths == 2) & (first == 13)]
        return found


@dataclass(frozen=True, slots=True)
class Look:
    """What a glance at texts shows, before any is parsed."""

    #: Those that are nothing at all.
    blank: Sequence[int] = ()
    #: Those that must be parsed alone: joined with others, they might pass for other rows than they are.
    odd: Sequence[int] = ()
    #: Those that must not be parsed, and why.
    bad: Mapping[int, str] = field(default_factory=dict)


class RowParser(ABC):
    """Parses texts of which each is one row, unless it is blank."""

    #: What a text is, in messages.
    unit = "line"

    @abstractmethod
    def parse(self, data: bytes) -> pa.RecordBatch:
        """The rows of one or more texts; raises `BadTextError`."""

    @abstractmethod
    def look(self, texts: Texts) -> Look:
        """Which texts need a look of their own: the count of rows must be enough to be sure of the others."""

    def groups(self, texts: Texts) -> Sequence[Indices]:
        """Texts that are more likely to parse without the others, because they are written alike."""
        return [np.arange(len(texts))]

    def checks(self) -> Sequence[Callable[[Texts], Mapping[int, str]]]:
        """What finds texts that are certainly bad, and why, without parsing them one by one; the cheapest first."""
        return ()

    def suspects(self, texts: Texts) -> Sequence[int]:
        """Texts that are likely to be bad, where that can be seen at little cost."""
        return ()


@dataclass(frozen=True, slots=True)
class ParsedTexts:
    """The rows of the good texts in order, and the bad texts with the reasons, likewise."""

    #: None where no text is good.
    batch: pa.RecordBatch | None
    bad: Mapping[int, str]


def parse_texts(parser: RowParser, texts: Texts) -> ParsedTexts:
    """All good texts and all bad ones."""
    look = parser.look(texts)
    if not look.odd and not look.bad and len(texts):
        try:
            return ParsedTexts(_parse(parser, texts.data, len(texts) - len(look.blank)), {})
        except BadTextError:
            pass
    salvage = _Salvage(parser, texts)
    salvage.run(look)
    return ParsedTexts(salvage.batch(), dict(sorted(salvage.bad.items())))


def is_blank(text: bytes) -> bool:
    return not text.strip(_WHITE_SPACE)


def _parse(parser: RowParser, data: bytes, expected: int) -> pa.RecordBatch:
    batch = parser.parse(data)
    if batch.num_rows != expected:
        plural = "s" if expected != 1 else ""
        raise BadTextError(f"{batch.num_rows} records on {expected} {parser.unit}{plural}")
    return batch


@dataclass(slots=True)
class _Salvage:
    """Looks for the bad ones among some texts."""

    parser: RowParser
    texts: Texts
    bad: dict[int, str] = field(default_factory=dict)
    #: Good texts, and their rows.
    pieces: list[tuple[Indices, pa.RecordBatch]] = field(default_factory=list)

    def run(self, look: Look) -> None:
        self.bad |= look.bad
        for index in look.odd:
            self._alone(index)
        is_rest = np.ones(len(self.texts), dtype=np.bool_)
        is_rest[[*look.blank, *look.odd, *look.bad]] = False
        rest = np.flatnonzero(is_rest)
        if not len(rest):
            return
        # Without any of these, all of them were tried already.
        if len(rest) == len(self.texts) or self._try(rest) is not None:
            groups = self.parser.groups(self.texts.take(rest))
            for group in groups:
                self._group(rest[group], is_tried=len(groups) == 1)

    def batch(self) -> pa.RecordBatch | None:
        if not self.pieces:
            return None
        if len(self.pieces) == 1:
            return self.pieces[0][1]
        order = np.argsort(np.concatenate([indices for indices, _ in self.pieces]), kind="stable")
        joined = pa.concat_batches([batch for _, batch in self.pieces])
        return joined if (np.diff(order) == 1).all() else joined.take(pa.array(order))

    def _group(self, indices: Indices, *, is_tried: bool) -> None:
        if not is_tried and self._try(indices) is None:
            return
        for check in self.parser.checks():
            found = check(self.texts.take(indices))
            self.bad |= {int(indices[place]): reason for place, reason in found.items()}
            indices = np.delete(indices, list(found))
            if found and self._try(indices) is None:
                return
        suspects = self.parser.suspects(self.texts.take(indices))
        for place in suspects:
            self._alone(int(indices[place]))
        indices = np.delete(indices, list(suspects))
        while len(indices):
            indices = self._scan(indices)

    def _scan(self, indices: Indices) -> Indices:
        """Parse window by window; returns what lay before bad rows that the parser named, and is not parsed yet."""
        left: list[Indices] = []
        start, width = 0, FIRST_WINDOW
        while start < len(indices):
            window = indices[start : start + width]
            error = self._try(window)
            if error is None:
                start, width = start + len(window), min(2 * width, GREATEST_WINDOW)
            elif len(window) == 1:
                self.bad[int(window[0])] = str(error)
                start += 1
            elif error.row is not None and 0 <= error.row < len(window) and not self._is_good(int(window[error.row])):
                left.append(window[: error.row])
                start, width = start + error.row + 1, max(2 * error.row, LEAST_WINDOW)
            else:
                width = len(window) // 2
        return np.concatenate(left) if left else np.zeros(0, dtype=np.int64)

    def _try(self, indices: Indices) -> BadTextError | None:
        """Take the rows of these texts, if all of them are good."""
        if not len(indices):
            return None
        try:
            batch = _parse(self.parser, self.texts.take(indices).data, len(indices))
        except BadTextError as error:
            return error
        self.pieces.append((indices, batch))
        return None

    def _alone(self, index: int) -> None:
        error = self._try(np.array([index]))
        if error is not None:
            self.bad[index] = str(error)

    def _is_good(self, index: int) -> bool:
        """Whether a text is good alone; if not, it is noted as bad."""
        try:
            _parse(self.parser, self.texts.text(index), 1)
        except BadTextError as error:
            self.bad[index] = str(error)
            return False
        return True
