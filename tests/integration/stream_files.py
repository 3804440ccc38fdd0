"""A stream of files, a pipeline that takes its batches, and what must come of it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from arroyo_core.state import ParquetBackend, get_storage_provider

FILES = 7
ROWS = 400
#: In each batch of a rate source.
RATE_ROWS = 100

PIPELINE = """
name: batches
parallelism: 2
checkpoint: {url: %(folder)s/state, interval: 10s}
nodes:
  - id: bids
    operator: spark.input
    config: {schema: {n: int64, price: int64, date_time: timestamp}, event_time_field: date_time}
  - id: rows
    operator: filesystem.sink
    inputs: [bids]
    config: {path: %(folder)s/rows, format: parquet}
  - id: in_time
    operator: std.watermark
    inputs: [bids]
    config: {max_lateness: 0s}
  - id: sums
    operator: std.tumbling_window
    inputs: [in_time]
    config:
      size: 1s
      keys: [price]
      aggregates: [{function: count, as: bids}, {function: sum, column: n, as: total}]
  - id: windows
    operator: filesystem.sink
    inputs: [sums]
    config: {path: %(folder)s/windows, format: parquet}
"""


def make_stream(folder: Path) -> None:
    """A pipeline, and a file for each batch: five seconds of rows; the last file only ends all windows."""
    (folder / "pipeline.yaml").write_text(PIPELINE % {"folder": folder})
    (folder / "in").mkdir()
    for number in range(FILES):
        n = np.arange(number * ROWS, (number + 1) * ROWS)
        offset_us = number * 5_000_000 + np.sort(n * 7919 % 5_000_000) if number < FILES - 1 else 10**12 + n
        rows = pa.table({"n": n, "price": n % 7, "date_time": pa.array(offset_us, pa.timestamp("us", "UTC"))})
        path = folder / "in" / f"{number:02}.parquet"
        pq.write_table(rows, path)
        # A file stream takes files by their times.
        os.utime(path, (1_000_000 + number, 1_000_000 + number))


def assert_exact(folder: Path) -> None:
    """Each row of the files was written once, and each window but those that the last file has opened."""
    closed = _assert_exact(folder, pq.read_table(folder / "in").to_pylist(), closed_s=1_000_000)
    assert closed > 100


def assert_exact_rate(folder: Path, batches: int) -> None:
    """The same of a rate source: numbered rows, those of each batch a second later. The last second is open."""
    start = datetime(1970, 1, 1, tzinfo=UTC)
    rows = [
        {"n": n, "price": n % 7, "date_time": start + timedelta(seconds=n // RATE_ROWS)}
        for n in range(batches * RATE_ROWS)
    ]
    assert _assert_exact(folder, rows, closed_s=batches - 1) == 7 * (batches - 1)


def _assert_exact(folder: Path, rows: Sequence[dict[str, Any]], *, closed_s: int) -> int:
    """The number of windows that begin before `closed_s`, which must be all that were written."""
    written = pq.read_table(sorted((folder / "rows").glob("part-*.parquet")))
    assert sorted(written.column("n").to_pylist()) == sorted(row["n"] for row in rows)
    expected: Counter[tuple[int, int]] = Counter()
    totals: Counter[tuple[int, int]] = Counter()
    for row in rows:
        key = (row["price"], int(row["date_time"].timestamp()))
        expected[key] += 1
        totals[key] += row["n"]
    windows = pq.read_table(sorted((folder / "windows").glob("part-*.parquet"))).to_pylist()
    found = [((row["price"], int(row["window_start"].timestamp())), row["bids"], row["total"]) for row in windows]
    closed = {key for key in expected if key[1] < closed_s}
    assert sorted(found) == sorted((key, expected[key], totals[key]) for key in closed)
    return len(closed)


def epochs(folder: Path) -> list[int]:
    backend = ParquetBackend(get_storage_provider(f"{folder}/state"), "batches")
    return sorted(backend.read_facts().published)
