"""Where the parts of URLs begin and end, for a whole column at once.

A regular expression with groups would say the same, at several times the cost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_udf_text.columns import Bytes, Mask, Offsets, bytes_of, texts_between

_BYTES = np.arange(256)
_IS_LETTER = np.isin(_BYTES & ~0x20, range(ord("A"), ord("Z") + 1))
_IS_DIGIT = np.isin(_BYTES, range(ord("0"), ord("9") + 1))
_IS_SCHEME = _IS_LETTER | _IS_DIGIT | np.isin(_BYTES, [ord(character) for character in "+.-"])
_IS_MARK = np.isin(_BYTES, [ord(character) for character in "/?#:@[]"])


@dataclass(frozen=True, slots=True)
class Span:
    """A part of every URL, from each start to its end; what a URL does not have is absent."""

    starts: Offsets
    ends: Offsets
    is_absent: Mask


class SplitUrls:
    """URLs without the white space around them, split as RFC 3986 has it."""

    def __init__(self, urls: pa.Array) -> None:
        trimmed = pc.ascii_trim_whitespace(urls)
        data, offsets = bytes_of(trimmed)
        # Two bytes more, so that what follows the last URL can be looked at.
        self._data: Bytes = np.concatenate([data, np.zeros(2, dtype=np.uint8)])
        self._starts, self._ends = offsets[:-1], offsets[1:]
        self._is_null: Mask = trimmed.is_null().to_numpy(zero_copy_only=False)
        #: What separates parts, and which byte it is: a tenth of all bytes, and searched several times.
        self._marks = np.flatnonzero(_IS_MARK[self._data])
        self._mark_bytes = self._data[self._marks]
        after_scheme = _first(np.flatnonzero(~_IS_SCHEME[self._data]), self._starts, self._ends)
        self._has_scheme = (
            (after_scheme < self._ends) & (self._data[after_scheme] == ord(":")) & _IS_LETTER[self._data[self._starts]]
        )
        self._scheme_ends = after_scheme
        self._rest = np.where(self._has_scheme, after_scheme + 1, self._starts)
        self._has_authority = (
            (self._rest + 1 < self._ends)
            & (self._data[self._rest] == ord("/"))
            & (self._data[self._rest + 1] == ord("/"))
        )
        beyond = np.minimum(self._rest + 2, self._ends)
        self._authority_ends = self._first_mark("/?#", beyond, self._ends)

    def scheme(self) -> Span:
        return Span(self._starts, self._scheme_ends, self._is_null | ~self._has_scheme)

    def path(self) -> Span:
        starts = np.where(self._has_authority, self._authority_ends, self._rest)
        return Span(starts, self._first_mark("?#", starts, self._ends), self._is_null)

    def query(self) -> Span:
        ends = self._first_mark("#", self._starts, self._ends)
        questions = self._first_mark("?", self._starts, ends)
        return Span(np.minimum(questions + 1, ends), ends, self._is_null | (questions == ends))

    def host_and_port(self) -> tuple[Span, Span]:
        """Both are absent where the authority is none: with brackets that do not match, or a port of letters."""
        ends = np.where(self._has_authority, self._authority_ends, self._rest)
        starts = self._after_user(np.where(self._has_authority, self._rest + 2, self._rest), ends)
        is_address = (starts < ends) & (self._data[starts] == ord("["))
        closings = self._first_mark("]", starts, ends)
        colons = self._first_mark(":", np.where(is_address, closings, starts), ends)
        host_starts = np.where(is_address, starts + 1, starts)
        host_ends = np.where(is_address, closings, colons)
        brackets = self._first_mark("[]", host_starts, ends)
        ports = np.minimum(colons + 1, ends)
        is_whole = np.where(is_address, (closings < ends) & (brackets == closings), brackets == ends)
        is_whole &= ~is_address | (np.minimum(closings + 1, ends) == colons)
        is_whole &= _first(np.flatnonzero(~_IS_DIGIT[self._data]), ports, ends) == ends
        is_absent = self._is_null | ~self._has_authority | ~is_whole
        return (
            Span(host_starts, host_ends, is_absent | (host_starts >= host_ends)),
            Span(ports, ends, is_absent | (ports >= ends)),
        )

    def texts(self, span: Span) -> pa.Array:
        """The texts of a part; null where it is absent."""
        return texts_between(self._data, span.starts, span.ends, span.is_absent)

    def _after_user(self, starts: Offsets, ends: Offsets) -> Offsets:
        """Behind the last '@', if there is one."""
        places = np.concatenate([[-1], self._marks[self._mark_bytes == ord("@")]])
        last = places[np.searchsorted(places, ends) - 1]
        return np.where(last >= starts, last + 1, starts)

    def _first_mark(self, characters: str, starts: Offsets, ends: Offsets) -> Offsets:
        is_wanted = np.zeros(len(self._marks), dtype=np.bool_)
        for character in characters:
            is_wanted |= self._mark_bytes == ord(character)
        return _first(self._marks[is_wanted], starts, ends)


def _first(places: Offsets, starts: Offsets, ends: Offsets) -> Offsets:
    """The first of the places from each start on; the end where there is none before it."""
    padded = np.append(places, np.iinfo(np.int64).max)
    found: Offsets = np.minimum(padded[np.searchsorted(places, starts)], ends)
    return found
