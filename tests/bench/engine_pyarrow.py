"""A bare loop over pyarrow: the least that reading, computing and writing can cost in one process."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from cases import COLUMNS, COMPRESSION, EUROS_PER_DOLLAR, MIN_PRICE, PARALLELISM, Task, Timing

BATCH_ROWS = 65_536


def batches(data: Path) -> Iterator[pa.RecordBatch]:
    for path in sorted(data.glob("*.parquet")):
        yield from pq.ParquetFile(path).iter_batches(batch_size=BATCH_ROWS, columns=list(COLUMNS))


def transform(batch: pa.RecordBatch) -> pa.RecordBatch:
    kept = batch.filter(pc.greater_equal(batch["price"], MIN_PRICE))
    euros = pc.multiply(kept["price"], EUROS_PER_DOLLAR)
    return pa.RecordBatch.from_arrays(
        [kept["auction"], kept["bidder"], euros, kept["channel"], kept["date_time"]],
        names=["auction", "bidder", "euros", "channel", "date_time"],
    )


def split(batch: pa.RecordBatch, parts: int) -> Iterator[pa.RecordBatch]:
    """The rows of each part, chosen by a multiplicative hash of the auction."""
    hashes = batch["auction"].to_numpy().view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    targets = (hashes >> np.uint64(32)) % np.uint64(parts)
    for part in range(parts):
        yield batch.take(pa.array(np.flatnonzero(targets == part)))


def run(task: Task) -> None:
    parts = PARALLELISM if task.is_shuffled else 1
    answer = Path(task.answer)
    answer.mkdir(parents=True)
    with ExitStack() as stack:
        writers: list[pq.ParquetWriter] = []
        for batch in batches(Path(task.data)):
            made = transform(batch)
            if not writers:
                paths = [answer / f"part-{part:05}-bare.parquet" for part in range(parts)]
                writers = [
                    stack.enter_context(pq.ParquetWriter(path, made.schema, compression=COMPRESSION)) for path in paths
                ]
            pieces = split(made, parts) if parts > 1 else [made]
            for writer, piece in zip(writers, pieces, strict=True):
                writer.write_batch(piece)


def main() -> None:
    task = Task.read(Path(sys.argv[1]))
    # pyarrow imports pandas at its first conversion, which is no part of the loop.
    transform(next(batches(Path(task.data))).slice(0, 0))
    start = time.perf_counter()
    run(task)
    Timing(job_s=time.perf_counter() - start, epochs=1).write(Path(sys.argv[2]))


if __name__ == "__main__":
    main()
