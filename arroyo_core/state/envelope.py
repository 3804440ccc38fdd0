"""Metadata files: a magic, a SHA-256, and a protobuf message; damage is found before it is parsed.

This finds what went wrong by itself. What somebody has changed on purpose `seals.py` finds, where there is a key.
"""

from __future__ import annotations

import hashlib
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from arroyo_core.state.failures import DamagedStateError

MAGIC = b"ARROYOM1"
DIGEST_BYTES = 32

MessageT = TypeVar("MessageT", bound=Message)


def seal(message: Message) -> bytes:
    """The content of a metadata file."""
    payload = message.SerializeToString(deterministic=True)
    return MAGIC + hashlib.sha256(payload).digest() + payload


def unseal(data: bytes, kind: type[MessageT], *, name: str) -> MessageT:
    """The message of a metadata file; `DamagedStateError` naming the file if it is not as it was written."""
    if data[: len(MAGIC)] != MAGIC:
        raise DamagedStateError(
            f"{name} is not a metadata file of this format: it does not begin with {MAGIC.decode()}"
        )
    digest = data[len(MAGIC) : len(MAGIC) + DIGEST_BYTES]
    return decode_payload(data[len(MAGIC) + DIGEST_BYTES :], digest, kind, name=name)


def decode_payload(payload: bytes, digest: bytes, kind: type[MessageT], *, name: str) -> MessageT:
    """The message with this SHA-256; `DamagedStateError` naming the file if it is not as it was written."""
    if hashlib.sha256(payload).digest() != digest:
        raise DamagedStateError(f"{name} is damaged: it does not match its checksum")
    return decode_message(payload, kind, name=name)


def decode_message(payload: bytes, kind: type[MessageT], *, name: str) -> MessageT:
    """The message that something in metadata holds; `DamagedStateError` naming it if that is none.

    A checksum shows damage only: whoever can write to the storage can compute it for anything.
    """
    try:
        return kind.FromString(payload)
    except DecodeError as error:
        raise DamagedStateError(f"{name} does not hold a {kind.DESCRIPTOR.name}: {error}") from error
