"""DuckDB's batch answer: from Parquet to Parquet, with as many threads as the others have cores."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import duckdb
from answers import file_list
from cases import COMPRESSION, PARALLELISM, Task, Timing
from operators import COLUMNS, case_of


def open_tables(data: Path) -> duckdb.DuckDBPyConnection:
    """The tables as views over their files; times without a zone, for DuckDB computes with others in an extension."""
    connection = duckdb.connect(config={"threads": str(PARALLELISM)})
    for table, columns in COLUMNS.items():
        chosen = ", ".join(column for column in columns if column != "date_time")
        connection.sql(
            f"CREATE VIEW {table} AS SELECT {chosen}, make_timestamp(epoch_us(date_time)) AS date_time "
            f"FROM read_parquet({file_list(data / table)})"
        )
    return connection


def main() -> None:
    task = Task.read(Path(sys.argv[1]))
    with open_tables(Path(task.data)) as connection:
        start = time.perf_counter()
        options = f"FORMAT parquet, COMPRESSION {COMPRESSION}, PER_THREAD_OUTPUT"
        connection.execute(f"COPY ({case_of(task.case).sql}) TO '{task.answer}' ({options})")
        Timing(job_s=time.perf_counter() - start, epochs=1).write(Path(sys.argv[2]))


if __name__ == "__main__":
    main()
