"""Entries for warm caches, and a function that other processes can import and run."""

from __future__ import annotations

import pyarrow as pa

from arroyo_core.proto.state_pb2 import StateFile
from arroyo_core.state import WarmCache


def facts(number: int) -> StateFile:
    return StateFile(checksum=bytes([number]) * 32)


def table(rows: int = 10) -> pa.Table:
    return pa.table({"_key_hash": pa.array(range(rows), pa.uint64())})


def put_and_get(folder: str, number: int) -> bool:
    """Whether a cache that others use at the same time gives back what was put into it, or nothing."""
    cache = WarmCache(folder)
    for _ in range(20):
        cache.put(facts(number % 3), table())
        found = cache.get(facts(number % 3), 0, 9)
        if found is not None and found.column("_key_hash").to_pylist() != list(range(10)):
            return False
    return True
