"""Confluent's wire format: a zero byte, the number of the schema in four bytes, the value.

Protobuf has the place of the message type within its file between number and value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_formats.format import BadMessage, Indices

HEADER_BYTES = 5
_HEADER = np.dtype([("magic", "u1"), ("id", ">i4")])


@dataclass(frozen=True, slots=True)
class Framed:
    """Messages taken apart, without those that are not framed."""

    #: For each the number of its schema.
    ids: Indices
    #: For each what follows the number.
    bodies: Sequence[bytes]
    #: For each its number among the messages; None where all are framed.
    origins: Indices | None
    bad: Sequence[BadMessage]

    def by_id(self) -> list[tuple[int, Indices]]:
        """The numbers of schemas, and the places in `bodies` of each."""
        if len(self.ids) == 0:
            return []
        if (self.ids == self.ids[0]).all():
            return [(int(self.ids[0]), np.arange(len(self.ids)))]
        order = np.argsort(self.ids, kind="stable")
        found, starts = np.unique(self.ids[order], return_index=True)
        return list(zip(found.tolist(), np.split(order, starts[1:]), strict=True))


def split(messages: Sequence[bytes]) -> Framed:
    """Take the header off every message; those that are too short, or begin with another byte, are bad."""
    bad: list[BadMessage] = []
    kept: Indices | None = None
    if min(map(len, messages), default=HEADER_BYTES) < HEADER_BYTES:
        long_enough = np.fromiter((len(message) >= HEADER_BYTES for message in messages), bool, len(messages))
        bad = [_too_short(index, messages[index]) for index in np.flatnonzero(~long_enough).tolist()]
        kept = np.flatnonzero(long_enough)
        messages = [messages[index] for index in kept.tolist()]
    heads = np.frombuffer(b"".join([message[:HEADER_BYTES] for message in messages]), _HEADER)
    is_framed = heads["magic"] == 0
    if not is_framed.all():
        kept = np.arange(len(messages)) if kept is None else kept
        bad += [_wrong_magic(int(kept[place]), int(heads["magic"][place])) for place in np.flatnonzero(~is_framed)]
        messages = [messages[place] for place in np.flatnonzero(is_framed).tolist()]
        kept, heads = kept[is_framed], heads[is_framed]
    return Framed(heads["id"].astype(np.int64), [message[HEADER_BYTES:] for message in messages], kept, bad)


def header(schema_id: int) -> bytes:
    """What stands in front of a value of this schema."""
    return b"\0" + schema_id.to_bytes(4, "big")


def frame(values: pa.Array, prefix: bytes) -> pa.Array:
    """`large_binary` values with a prefix each; null stays null."""
    values = values.cast(pa.large_binary())
    ends = [pa.scalar(item, pa.large_binary()) for item in (prefix, b"")]
    return pc.binary_join_element_wise(ends[0], values, ends[1])


def read_indexes(body: bytes) -> tuple[tuple[int, ...], int]:
    """The place of a message type (of the first message the third nested one: `(0, 2)`), and where the value begins.

    Raises `ValueError` for bytes that are none.
    """
    count, at = _read_number(body, 0)
    if not 0 <= count <= len(body):
        raise ValueError(f"a message type cannot be nested {count} deep")
    path = []
    for _ in range(count):
        index, at = _read_number(body, at)
        path.append(index)
    # The first message of the file is so frequent that it is written as no path at all.
    return tuple(path) or (0,), at


def write_indexes(path: Sequence[int]) -> bytes:
    """The place of a message type as `read_indexes` reads it."""
    return b"\0" if tuple(path) == (0,) else b"".join(map(zigzag, (len(path), *path)))


def zigzag(value: int) -> bytes:
    """A number that is not negative, as Avro and this framing write it."""
    value, found = value << 1, bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def _read_number(body: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 35, 7):
        if at >= len(body):
            raise ValueError("ends within the place of its message type")
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value >> 1 ^ -(value & 1), at
    raise ValueError("the place of its message type is not a number")


def _too_short(index: int, message: bytes) -> BadMessage:
    return BadMessage(index, f"has {len(message)} bytes: too short for the number of a schema")


def _wrong_magic(index: int, magic: int) -> BadMessage:
    return BadMessage(index, f"begins with byte {magic}, and not with 0 and the number of a schema")
