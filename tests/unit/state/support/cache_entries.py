"""Entries for warm caches, and functions that other processes can import and run."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pyarrow as pa

from arroyo_core.ids import TaskInfo
from arroyo_core.proto.state_pb2 import StateFile
from arroyo_core.state import WarmCache
from arroyo_core.state.cache import Shelf

URL = "/somewhere"


def facts(number: int, *, epoch: int = 1, writer: int = 0) -> StateFile:
    path = f"job/checkpoints/{epoch}/table-op-t-{writer}-{number:016x}.parquet"
    return StateFile(checksum=bytes([number]) * 32, path=path, epoch=epoch)


def table(rows: int = 10) -> pa.Table:
    return pa.table({"_key_hash": pa.array(range(rows), pa.uint64())})


def shelf_of(cache: WarmCache, index: int = 0, *, job_id: str = "job") -> Shelf:
    task = TaskInfo(job_id=job_id, operator_id="op", operator_name="x", task_index=index, parallelism=2)
    return cache.shelf(URL, task)


def entries_of(folder: Path) -> list[Path]:
    return sorted(Path(folder).rglob("*.arrow"))


def flip_bit(path: Path, place: int) -> None:
    """As a disk would: nothing but the content tells."""
    before = path.stat()
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    with path.open("r+b") as file:
        file.write(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_ino == before.st_ino


def put_and_get(folder: str, number: int) -> bool:
    """Whether a cache that others use at the same time gives back what was put into it, or nothing."""
    shelf = shelf_of(WarmCache(folder))
    for _ in range(20):
        shelf.put(facts(number % 3), table())
        found = shelf.get(facts(number % 3), 0, 9)
        if found is not None and found.column("_key_hash").to_pylist() != list(range(10)):
            return False
    return True


def die_inside_put(folder: str) -> None:
    """Be killed after the rows of an entry were written, and before the entry is there."""
    shelf = shelf_of(WarmCache(folder))
    Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    shelf.put(facts(1), table())
