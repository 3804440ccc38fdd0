"""What differs between the releases of Spark that pipelines run on; all else is the same on each.

| Since | What is used | Before it |
|---|---|---|
| 4.0 | a limit of bytes for the batches that Python gets | batches are limited by rows while an epoch runs |
| 4.0 | Java 17 | Java 11 will do |
| 4.0 | Spark Connect tells how far a job is | nothing is told |
| 4.1 | `repartitionById` | rows are partitioned by numbers whose hash leads where they should go |
| 4.2 | frames that are collected are read within a context | they are read as they are |

Unix sockets between the JVM and Python (4.1) are a setting, which older ones ignore.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from packaging.specifiers import SpecifierSet

from arroyo_core.errors import SetupError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Release: TypeAlias = tuple[int, int]

#: As the extra `spark` requires it; docs/spark-versions.md says which ones are tested.
SUPPORTED = SpecifierSet(">=3.5,<5")
INSTALL = "pip install 'arroyo-core[spark]'"

#: From this one on, Java archives classes as we ask it to; and Spark 4 needs it.
ARCHIVING_JAVA = 17

#: Frames are about 1 MB: few of them make a batch.
FRAMES_PER_BATCH = 16
#: Sessions of ours, which frames go through, have a limit that is far too small for rows.
_FEW_ROWS, _MANY_ROWS = 1_000, 10_000
#: Where only rows are limited, and rows of DataFrames and frames share the limit: half a gigabyte of frames at most.
_ROWS_AND_FRAMES = 512
BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"

#: Of Spark's hash of the columns that rows are partitioned by.
_SEED = 42
_MASK = 0xFFFFFFFF


def check_pyspark() -> None:
    """Raise `SetupError` where this Python has no pyspark, or one that pipelines do not run on."""
    try:
        import pyspark
    except ModuleNotFoundError as error:
        if error.name != "pyspark":
            raise SetupError(f"pyspark cannot be imported: {error}") from error
        raise SetupError(
            f"pipelines run on Spark, and this Python has no pyspark: {INSTALL}, or use the Python of a platform that "
            "has its own"
        ) from error
    version = str(pyspark.__version__)
    if not is_supported(version):
        raise SetupError(f"this Python has pyspark {version}, and pipelines run on {SUPPORTED}: {INSTALL}")


def is_supported(version: str) -> bool:
    """Vendors add to the number: only its start counts."""
    found = re.match(r"\d+(\.\d+)*", version)
    return found is not None and SUPPORTED.contains(found[0])


def oldest_java() -> int:
    """The oldest Java that the Spark of this Python runs on."""
    try:
        import pyspark
    except ModuleNotFoundError:
        return ARCHIVING_JAVA
    return 11 if release_of(str(pyspark.__version__)) < (4, 0) else ARCHIVING_JAVA


def release_of(version: str) -> Release:
    """`(4, 0)` of `4.0.1`, or of what a vendor calls it."""
    found = re.match(r"(\d+)\.(\d+)", version)
    if found is None:
        raise SetupError(f"Spark says that its version is {version!r}, which is not one")
    return int(found[1]), int(found[2])


def loaded(served: Any, deserializer: Any) -> list[Any]:
    """What a JVM has collected and serves on a socket."""
    try:
        from pyspark.util import _load_from_socket
    except ImportError:
        from pyspark.rdd import _load_from_socket

    stream = _load_from_socket(served, deserializer)
    if isinstance(stream, AbstractContextManager):
        with stream as elements:
            return list(elements)
    return list(stream)


def partitioned(rows: DataFrame, column: str, *, width: int, release: Release) -> DataFrame:
    """Rows in `width` partitions, each in that of its number in the column, modulo `width`.

    `release` is that of the server, where rows are moved.
    """
    from pyspark.sql import functions as sql

    number = sql.col(column) % sql.lit(width)
    if release >= (4, 1) and hasattr(rows, "repartitionById"):
        return rows.repartitionById(width, number)
    keys = sql.array(*(sql.lit(key) for key in partition_keys(width)))
    return rows.repartition(width, sql.get(keys, number))


@lru_cache(maxsize=64)
def partition_keys(width: int) -> tuple[int, ...]:
    """For each of `width` partitions a number that Spark puts there, when it partitions rows by it."""
    keys: dict[int, int] = {}
    number = 0
    while len(keys) < width:
        keys.setdefault(spark_hash(number) % width, number)
        number += 1
    return tuple(keys[partition] for partition in range(width))


def spark_hash(number: int) -> int:
    """Spark's hash of an `int` column: Murmur3 for 32 bits, with a sign."""
    mixed = (number & _MASK) * 0xCC9E2D51 & _MASK
    mixed = _rotated(mixed, 15) * 0x1B873593 & _MASK
    value = (_rotated(_SEED ^ mixed, 13) * 5 + 0xE6546B64) & _MASK
    # Four bytes were hashed.
    value ^= 4
    value = (value ^ value >> 16) * 0x85EBCA6B & _MASK
    value = (value ^ value >> 13) * 0xC2B2AE35 & _MASK
    value ^= value >> 16
    return value - (1 << 32) if value >> 31 else value


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & _MASK


def rows_per_batch(before: int, release: Release, *, has_rows: bool) -> int:
    """How many rows a batch that Spark sends to Python may have while an epoch runs.

    `before` is what the session says; zero and less mean that there is no limit. With `has_rows` the epoch reads
    DataFrames: then rows are rows in its first wave, and frames in the others.
    """
    if release >= (4, 0):
        # Bytes are limited, too.
        return _MANY_ROWS if has_rows and 0 < before < _FEW_ROWS else before
    if has_rows:
        return _ROWS_AND_FRAMES
    return min(FRAMES_PER_BATCH, before) if before > 0 else FRAMES_PER_BATCH


class BatchLimits:
    """Sets how large the batches of sessions are, while epochs run in them.

    Several jobs may share a session: it gets its own setting back after the last of them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: How many epochs run in a session, and what its setting was before the first.
        self._running: dict[int, tuple[int, str]] = {}

    @contextmanager
    def within(self, session: SparkSession, release: Release, *, has_rows: bool = False) -> Iterator[None]:
        if release >= (4, 0) and not has_rows:
            yield
            return
        key = id(session)
        with self._lock:
            count, before = self._running.get(key, (0, ""))
            if count == 0:
                before = str(session.conf.get(BATCH_ROWS))
                session.conf.set(BATCH_ROWS, str(rows_per_batch(int(before), release, has_rows=has_rows)))
            self._running[key] = (count + 1, before)
        try:
            yield
        finally:
            with self._lock:
                count, before = self._running.pop(key)
                if count > 1:
                    self._running[key] = (count - 1, before)
                else:
                    session.conf.set(BATCH_ROWS, before)


batch_limits = BatchLimits()
