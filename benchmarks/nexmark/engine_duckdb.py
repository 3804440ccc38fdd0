"""DuckDB's batch answer: from Parquet to Parquet."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import duckdb

from .duckdb_tables import open_parquet, quoted
from .queries import QUERIES
from .tasks import COMPRESSION, Task, Timing


def main() -> None:
    task = Task.read(Path(sys.argv[1]))
    query = QUERIES[task.case]
    with open_parquet({table: task.files(table) for table in query.tables}, threads=task.cores) as connection:
        start = time.perf_counter()
        options = f"FORMAT parquet, COMPRESSION {COMPRESSION}, PER_THREAD_OUTPUT"
        connection.execute(f"COPY ({query.sql}) TO {quoted(task.answer)} ({options})")
        job_s = time.perf_counter() - start
    Timing(job_s=job_s, epochs=1, versions={"duckdb": duckdb.__version__}).write(Path(sys.argv[2]))


if __name__ == "__main__":
    main()
