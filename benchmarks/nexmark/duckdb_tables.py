"""The tables of a dataset as views of DuckDB. Imports nothing of ours: DuckDB has an environment of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import duckdb

TABLES = ("bid", "auction", "person")
_TIMES: Mapping[str, Sequence[str]] = {
    "bid": ("date_time",),
    "auction": ("date_time", "expires"),
    "person": ("date_time",),
}


def open_parquet(files: Mapping[str, Iterable[str]], *, threads: int) -> duckdb.DuckDBPyConnection:
    """A view for each table; times lose their zone, which is UTC, for DuckDB computes with others in an extension."""
    connection = duckdb.connect(config={"threads": str(threads)})
    for table, paths in files.items():
        times = ", ".join(f"make_timestamp(epoch_us({name})) AS {name}" for name in _TIMES[table])
        connection.sql(f"CREATE VIEW {table} AS SELECT * REPLACE ({times}) FROM read_parquet({listed(paths)})")
    return connection


def listed(paths: Iterable[object]) -> str:
    """A list of texts, as SQL."""
    return "[" + ", ".join(quoted(str(path)) for path in paths) + "]"


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
