"""DuckDB's batch answer: from Parquet to Parquet, with as many threads as the others have cores."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import duckdb

from ..nexmark.duckdb_tables import open_parquet
from ..nexmark.tasks import COMPRESSION, PARALLELISM, Task, Timing
from .cases import COLUMNS, case_of


def open_tables(data: Path) -> duckdb.DuckDBPyConnection:
    """The tables as views over their files."""
    files = {table: [str(path) for path in sorted((data / table).iterdir())] for table in COLUMNS}
    return open_parquet(files, threads=PARALLELISM)


def main() -> None:
    task = Task.read(Path(sys.argv[1]))
    with open_tables(Path(task.data)) as connection:
        start = time.perf_counter()
        options = f"FORMAT parquet, COMPRESSION {COMPRESSION}, PER_THREAD_OUTPUT"
        connection.execute(f"COPY ({case_of(task.case).sql}) TO '{task.answer}' ({options})")
        Timing(job_s=time.perf_counter() - start, epochs=1).write(Path(sys.argv[2]))


if __name__ == "__main__":
    main()
