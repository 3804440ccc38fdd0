"""Rows to call functions with: places and titles."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

BATCH_ROWS = 65_536
_WORDS = ["Red", "green", "Blue!", "old", "NEW", "& more", "bicycle", "Lamp", "chair", "(used)", "box"]


def make_batch(rows: int, seed: int = 1) -> pa.RecordBatch:
    random = np.random.default_rng(seed)
    words = np.array(_WORDS, dtype=object)[random.integers(0, len(_WORDS), (rows, 3))]
    return pa.RecordBatch.from_pydict(
        {
            "number": pa.array(np.arange(rows)),
            "lat": random.uniform(-90, 90, rows),
            "lon": random.uniform(-180, 180, rows),
            "title": pa.array([" ".join(row) for row in words]),
        }
    )


def write_files(folder: Path, *, rows: int, files: int = 4) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        pq.write_table(pa.table(make_batch(rows // files, seed=number)), folder / f"{number}.parquet")
    return folder
