"""The stable hash of a Python key, and exact groups of equal keys over Arrow columns."""

from __future__ import annotations

from typing import Any

from arroyo_core.api.hashing import hash_bytes
from arroyo_core.state import codec


def hash_key(key: Any) -> int:
    """The 64-bit hash of a key of a global table: that of its msgpack bytes, the same everywhere."""
    return hash_bytes(codec.encode(key, table="hash_key", what="key"))
