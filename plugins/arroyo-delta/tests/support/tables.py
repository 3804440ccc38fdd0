"""Tables as others read them."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote

import duckdb
import pyarrow as pa
from deltalake import DeltaTable


def read(path: Path, schema: pa.Schema) -> pa.Table:
    """All rows of a table, in plain types; none where there is no table."""
    if not (path / "_delta_log").exists():
        return schema.empty_table()
    found = pa.table(DeltaTable(str(path)).scan())
    return found.select(schema.names).cast(schema)


def rows(path: Path, *names: str) -> list[tuple[object, ...]]:
    """All rows, sorted by what they look like: read by the library, which must agree with what the log says by hand."""
    if not (path / "_delta_log").exists():
        return []
    found = pa.table(DeltaTable(str(path)).scan())
    columns = list(names) or found.column_names
    by_library = _sorted(list(zip(*(found.column(name).to_pylist() for name in columns), strict=True)))
    assert by_library == _sorted(rows_by_hand(path, columns))
    return by_library


def rows_by_hand(path: Path, columns: list[str]) -> list[tuple[object, ...]]:
    """The rows of the files that the entries of the log leave, read by DuckDB. Partition columns are of text only."""
    live: dict[str, dict[str, str | None]] = {}
    for entry in sorted((path / "_delta_log").glob("*.json")):
        for line in entry.read_text().splitlines():
            action = json.loads(line)
            if "remove" in action:
                del live[unquote(action["remove"]["path"])]
            elif "add" in action:
                live[unquote(action["add"]["path"])] = action["add"]["partitionValues"]
    found: list[tuple[object, ...]] = []
    with duckdb.connect() as database:
        for name, values in live.items():
            file = database.read_parquet(str(path / name), hive_partitioning=False)
            for row in file.fetchall():
                known = {**values, **dict(zip(file.columns, row, strict=True))}
                found.append(tuple(known.get(column) for column in columns))
    return found


def _sorted(found: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return sorted(found, key=repr)
