"""Random text as Arrow string arrays, built from blocks of bytes without a loop over rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from arroyo_nexmark.randomness import GOLDEN, Int64s, UInt64s, low_below, mix

Block = npt.NDArray[np.uint8]

#: Nexmark's shortest random string.
MIN_LENGTH = 3

_A = ord("a")
_LETTERS = bytes(_A + byte * 26 // 256 for byte in range(256))
#: One byte in thirteen is a space.
_SPACED = bytes(ord(" ") if byte * 13 < 256 else _LETTERS[byte] for byte in range(256))


@dataclass(frozen=True, slots=True)
class Text:
    """Row i is the first `lengths[i]` bytes of `block[i]`."""

    block: Block
    lengths: Int64s


def exact_text(bits: UInt64s, lengths: Int64s) -> Text:
    """Letters, `lengths[i]` of them in row i, drawn from a stream that begins at `bits[i]`."""
    return Text(_block(bits, int(lengths.max(initial=0)), _LETTERS), lengths)


def spaced_text(bits: UInt64s, max_length: int) -> Text:
    """Letters and inner spaces, 3 to `max_length - 1` bytes.

    The original trims its strings; here both ends are letters from the start, so that the length
    needs no text to be made.
    """
    lengths = spaced_lengths(bits, max_length)
    block = _block(bits, max_length - 1, _SPACED).copy()
    rows = np.arange(len(block))
    for column in (np.zeros(len(block), dtype=np.int64), lengths - 1):
        ends = block[rows, column]
        block[rows, column] = np.where(ends == ord(" "), np.uint8(_A), ends)
    return Text(block, lengths)


def spaced_lengths(bits: UInt64s, max_length: int) -> Int64s:
    """The lengths of `spaced_text` for the same bits."""
    return MIN_LENGTH + low_below(bits, max_length - MIN_LENGTH)


def constant_text(value: str, rows: int) -> Text:
    """The same ASCII text in every row."""
    raw = np.frombuffer(value.encode("ascii"), dtype=np.uint8)
    return Text(np.broadcast_to(raw, (rows, len(raw))), np.full(rows, len(raw), dtype=np.int64))


def digits(values: Int64s, width: int) -> Text:
    """Decimal numbers, zero-padded to `width` digits."""
    block = np.empty((len(values), width), dtype=np.uint8)
    for column in range(width):
        block[:, column] = ord("0") + values // 10 ** (width - 1 - column) % 10
    return Text(block, np.full(len(values), width, dtype=np.int64))


def join_text(parts: Sequence[Text]) -> pa.StringArray:
    """Row i is the concatenation of row i of every part."""
    block = np.concatenate([part.block for part in parts], axis=1) if len(parts) > 1 else parts[0].block
    masks = [np.arange(part.block.shape[1]) < part.lengths[:, None] for part in parts]
    mask = np.concatenate(masks, axis=1) if len(masks) > 1 else masks[0]
    lengths = np.sum([part.lengths for part in parts], axis=0)
    return _string_array(block[mask], lengths)


def extra_lengths(bits: UInt64s, used: Int64s | int, average: int) -> Int64s:
    """Lengths of `extra` that bring events which use `used` bytes to the average size, give or take a fifth."""
    room = np.maximum(average - np.asarray(used, dtype=np.int64), 0)
    delta = (room + 2) // 5
    spread = np.maximum(2 * delta, 1).view(np.uint64)
    drawn = ((bits >> np.uint64(32)) * spread) >> np.uint64(32)
    lengths: Int64s = room - delta + drawn.view(np.int64)
    return lengths


def _block(bits: UInt64s, width: int, alphabet: bytes) -> Block:
    """`width` random bytes of the alphabet per row, from as many 64-bit words as that takes."""
    words = max(-(-width // 8), 1)
    states = bits[:, None] + np.arange(1, words + 1, dtype=np.uint64) * GOLDEN
    raw = mix(states).astype("<u8", copy=False).tobytes().translate(alphabet)
    return np.frombuffer(raw, dtype=np.uint8).reshape(len(bits), words * 8)


def _string_array(data: Block, lengths: Int64s) -> pa.StringArray:
    offsets = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.StringArray.from_buffers(len(lengths), pa.py_buffer(offsets), pa.py_buffer(data))
