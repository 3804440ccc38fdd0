"""Bytes that nobody meant to send."""

from __future__ import annotations

import random
from collections.abc import Sequence

#: Lengths, counts and tags that parsers trip over.
_EDGES = [
    b"",
    b"\0",
    b"\x01",
    b"\x7f",
    b"\x80",
    b"\xff",
    b"\xff" * 9 + b"\x01",
    b"\xfe" + b"\xff" * 8 + b"\x01",
    b"\x80" * 12,
]


def random_bytes(rng: random.Random, count: int) -> list[bytes]:
    return [rng.randbytes(rng.choice((0, 1, 2, 3, 5, 8, 13, 40, 200))) for _ in range(count)]


def mutated(rng: random.Random, seeds: Sequence[bytes], count: int) -> list[bytes]:
    """Right messages with something changed, cut off, put in, repeated or joined; some are unharmed."""
    return [_mutated(rng, rng.choice(seeds), seeds) for _ in range(count)]


def _mutated(rng: random.Random, message: bytes, seeds: Sequence[bytes]) -> bytes:
    for _ in range(rng.randrange(4)):
        place = rng.randrange(len(message) + 1)
        match rng.randrange(6):
            case 0:
                message = message[:place]
            case 1:
                message = message[:place] + rng.choice(_EDGES) + message[place:]
            case 2:
                message = message[:place] + bytes([rng.randrange(256)]) + message[place + 1 :]
            case 3:
                message = message[:place] + rng.choice(_EDGES) + message[place + 1 :]
            case 4:
                message = message[:place] + rng.choice(seeds)[place:]
            case 5:
                end = rng.randrange(place, len(message) + 1)
                message = message[:end] + message[place:end] + message[end:]
    return message
