"""No bytes crash a reader, whatever they are: `FORMATS_RANDOM_STRINGS=1000000` for many, `FORMATS_SEED` repeats."""

from __future__ import annotations

import os
import random

import pytest
from arroyo_formats import installed_formats

from .support.cases import Subject, can_hold, schema_of
from .support.values import TYPES, batch_of
from .test_behaviour import by_message

#: The same in CI every time, as Hypothesis has it.
SEED = int(
    os.environ.get("FORMATS_SEED") or (362_722 if os.environ.get("CI") else random.SystemRandom().randrange(1_000_000))
)
FORMATS = sorted(installed_formats())
#: Of all formats together.
STRINGS = int(os.environ.get("FORMATS_RANDOM_STRINGS") or 10_000)
BATCH = 200
#: Bytes that mean something to some format are more likely to lead somewhere.
TOKENS = [
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b'"',
    b"\\",
    b"\n",
    b"\r",
    b"null",
    b"true",
    b"-1e9",
    b'"c0"',
    b"PAR1",
    b"\xff" * 4,
]


def good_messages(subject: Subject) -> list[bytes]:
    nothing = batch_of(subject.schema, [(None,) * len(subject.schema)])
    return [message for message in subject.encode(nothing) if message is not None]


def random_message(source: random.Random, good: list[bytes]) -> bytes:
    kind = source.randrange(4)
    if kind == 0:
        return source.randbytes(source.randrange(60))
    if kind == 1:
        return b"".join(source.choice(TOKENS) for _ in range(source.randrange(20)))
    message = bytearray(source.choice(good) if good else b"")
    for _ in range(source.randrange(1, 4)):
        place = source.randrange(len(message) + 1)
        if kind == 2:
            message[place : place + source.randrange(3)] = source.randbytes(source.randrange(3))
        else:
            message[place:place] = source.choice(TOKENS)
    return bytes(message)


@pytest.mark.parametrize("name", FORMATS)
def test_random_bytes_are_rows_or_bad(name: str) -> None:
    source = random.Random(f"{SEED} {name}")
    held = [kind for kind in TYPES if can_hold(name, kind)]
    widest = 3 if can_hold(name, held[0], held[0]) else 1
    left = STRINGS // len(FORMATS)
    while left > 0:
        subject = Subject(name, schema_of(source.choice(held) for _ in range(widest)))
        good = good_messages(subject)
        messages = [random_message(source, good) for _ in range(min(BATCH, left))]
        left -= len(messages)
        place = source.randrange(len(messages))
        messages[place:place] = good
        found = by_message(subject.reader().read(messages), len(messages))
        assert "bad" not in found[place : place + len(good)], f"FORMATS_SEED={SEED}: a good message is bad among others"
