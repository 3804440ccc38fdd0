"""Digits within texts: hiding all but the last, and the check digit of card numbers."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_udf_text.columns import Bytes, Mask, Offsets, bytes_of, each_text, on_other_than_ascii, texts_of

#: The lengths of card numbers (ISO/IEC 7812).
CARD_DIGITS = range(12, 20)

_FOREIGN_DIGIT = re.compile(r"[^\D0-9]")
_STAR = ord("*")
_IS_GAP = np.isin(np.arange(256), [ord(character) for character in " -\t\r\n\f\v"])


def hide_digits(texts: pa.Array, *, keep: int, fewest: int) -> pa.Array:
    """Every digit but the last `keep` becomes '*'; every one where there are less than `fewest`."""
    plain = on_other_than_ascii(texts, each_text(_ascii_digits))
    data, offsets = bytes_of(plain)
    is_digit = _is_digit(data)
    ordinals, counts = _count_digits(is_digit, offsets)
    owners = np.repeat(np.arange(len(counts)), np.diff(offsets))
    shown = np.where(counts < fewest, 0, keep)
    is_hidden = is_digit & (counts[owners] - ordinals >= shown[owners])
    data[is_hidden] = _STAR
    return texts_of(data, offsets, plain)


def has_check_digit(texts: pa.Array) -> pa.Array:
    """Whether a text is a card number, spaces and hyphens apart, whose last digit is right (Luhn)."""
    data, offsets = bytes_of(texts)
    is_kept = ~_IS_GAP[data]
    data, offsets = data[is_kept], np.concatenate([[0], np.cumsum(is_kept)])[offsets]
    counts = np.diff(offsets)
    others = np.concatenate([[0], np.cumsum(~_is_digit(data))])
    is_number = (np.diff(others[offsets]) == 0) & (counts >= CARD_DIGITS.start) & (counts < CARD_DIGITS.stop)
    rows = np.flatnonzero(is_number)
    # One column per place, from the right: the numbers are short, and all rows are done at once.
    places = offsets[1:][rows, None] - 1 - np.arange(CARD_DIGITS.stop - 1)
    digits = np.where(places >= offsets[:-1][rows, None], data[np.maximum(places, 0)].astype(np.int64) - ord("0"), 0)
    digits[:, 1::2] *= 2
    digits -= np.where(digits > 9, 9, 0)
    is_number[rows] = digits.sum(axis=1) % 10 == 0
    return pa.array(is_number, mask=pc.is_null(texts).to_numpy(zero_copy_only=False))


def _is_digit(data: Bytes) -> Mask:
    return (data >= ord("0")) & (data <= ord("9"))


def _count_digits(is_digit: Mask, offsets: Offsets) -> tuple[Offsets, Offsets]:
    """For each byte, how many digits its text has up to and with it; for each text, how many in all."""
    running = np.cumsum(is_digit)
    before = np.concatenate([[0], running])[offsets]
    return running - np.repeat(before[:-1], np.diff(offsets)), np.diff(before)


def _ascii_digits(text: str) -> str:
    """Digits of other scripts are digits too: a number in them must not slip through."""
    return _FOREIGN_DIGIT.sub(lambda found: str(int(found[0])), text)
