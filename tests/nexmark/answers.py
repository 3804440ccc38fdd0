"""What DuckDB says of the same events, and how the rows of a pipeline differ from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds

from arroyo_core.api.updating import IS_RETRACT, UPDATING_META
from arroyo_core.testing import run_in_process

TABLES = ("bid", "auction", "person")
Tables = Mapping[str, pa.Table]


def make_events(source: Mapping[str, object], folder: Path) -> Tables:
    """All tables of Nexmark as the source makes them."""
    sources = [{"id": table, "operator": "nexmark.source", "config": {**source, "table": table}} for table in TABLES]
    sinks = [
        {
            "id": f"{table}_files",
            "operator": "filesystem.sink",
            "inputs": [table],
            "config": {"path": str(folder / table)},
        }
        for table in TABLES
    ]
    path = folder / "events.yaml"
    path.write_text(json.dumps({"name": "events", "nodes": [*sources, *sinks]}))
    assert run_in_process(path).is_finished
    return {table: read_rows(folder / table) for table in TABLES}


def read_rows(folder: Path) -> pa.Table:
    """What a pipeline wrote as Parquet, with the columns that became folders; times lose their zone, which is UTC."""
    files = sorted(str(path) for path in folder.rglob("part-*.parquet"))
    if not files:
        raise AssertionError(f"no files in {folder}")
    return without_zones(
        ds.dataset(files, partitioning=ds.HivePartitioning.discover(), partition_base_dir=str(folder)).to_table()
    )


def without_zones(table: pa.Table) -> pa.Table:
    fields = [pa.field(f.name, pa.timestamp("us")) if pa.types.is_timestamp(f.type) else f for f in table.schema]
    return table.cast(pa.schema(fields))


def differences(query: str, tables: Tables, found: pa.Table) -> list[tuple[object, ...]]:
    """Rows of which there are too many, and too few: each with their excess as its last column."""
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        expected = without_zones(connection.sql(query).to_arrow_table())
        assert expected.num_rows, "a query without any answer proves nothing"
        added, taken_back = split(found)
        assert sorted(added.schema.names) == sorted(expected.schema.names)
        connection.register("expected_rows", expected)
        connection.register("added_rows", added)
        connection.register("taken_back_rows", taken_back)
        parts = [("added_rows", 1), ("taken_back_rows", -1), ("expected_rows", -1)]
        union = " UNION ALL ".join(f"SELECT {columns(expected)}, {sign} AS excess FROM {name}" for name, sign in parts)
        result = connection.sql(
            f"SELECT * EXCLUDE excess, sum(excess) FROM ({union}) GROUP BY ALL HAVING sum(excess) <> 0"
        )
        return result.fetchall()


def split(found: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Rows that were added, and rows that were taken back."""
    if UPDATING_META not in found.schema.names:
        return found, found.slice(0, 0)
    is_retract = pa.chunked_array([chunk.field(IS_RETRACT) for chunk in found.column(UPDATING_META).chunks], pa.bool_())
    rows = found.drop_columns([UPDATING_META])
    return rows.filter(pa.compute.invert(is_retract)), rows.filter(is_retract)


def columns(table: pa.Table) -> str:
    """The columns by name; the last digits of a mean depend on the order in which numbers were added."""
    return ", ".join(
        f'round("{field.name}", 4) AS "{field.name}"' if pa.types.is_floating(field.type) else f'"{field.name}"'
        for field in table.schema
    )
