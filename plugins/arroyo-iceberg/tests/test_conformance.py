"""Source, sink and lookup keep the rules of `arroyo_testing.conformance`; what is visible is read by pyiceberg."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from arroyo_testing.conformance import Conformance, LookupCase, SinkCase, SourceCase, Stream

from .support.tables import catalog_config, load_table, make_table, read_table

ROWS = pa.table(
    {
        "id": pa.array(range(12), pa.int64()),
        "name": pa.array(["a", "b", None, "d", "e, f", 'g "h"', "", "i", "j", "ü", "l", "m"], pa.string()),
        "price": pa.array([1.5, None, 3.0, -4.25, 0.0, 6.0, 7.0, 1e300, 9.0, 10.0, 11.0, 12.0], pa.float64()),
        "ok": pa.array([True, False, None] * 4, pa.bool_()),
        "at": pa.array([second * 10_000_000_000 for second in range(12)], pa.timestamp("us", "UTC")),
    }
)
NESTED = ROWS.append_column("tags", pa.array([["x", None], [], None] * 4, pa.list_(pa.string()))).append_column(
    "place", pa.array([{"x": 1, "y": "a"}, None, {"x": None, "y": ""}] * 4)
)
KEYED = pa.table(
    {"word": ["a", "b", None, "a", "c", "b", "a", "d"], "n": pa.array(range(8), pa.int64())},
)


def sink_config(**config: Any) -> Any:
    return lambda folder: {"catalog": catalog_config(folder), "table": "shop.rows", "if_missing": "create", **config}


def visible(rows: pa.Table) -> Any:
    return lambda folder: read_table(folder, "shop.rows", rows.schema)


def table_of_files(folder: Path) -> dict[str, Any]:
    """A table of three snapshots and four files."""
    for part in (ROWS.slice(0, 5), ROWS.slice(5, 1), ROWS.slice(6)):
        make_table(folder, "shop.rows", part)
    return {"catalog": catalog_config(folder), "table": "shop.rows", "event_time_field": "at", "batch_rows": 2}


def changes_of_files(folder: Path) -> dict[str, Any]:
    """Rows that are added, taken away, and kept by files that are written again."""
    config = table_of_files(folder)
    load_table(folder, "shop.rows").delete("id == 3 or id == 8")
    return {**config, "changes": True, "start": {"timestamp": "2001-01-01T00:00:00Z"}}


def nested_table(folder: Path) -> dict[str, Any]:
    for part in (NESTED.slice(0, 7), NESTED.slice(7)):
        make_table(folder, "shop.rows", part)
    return {"catalog": catalog_config(folder), "table": "shop.rows"}


conformance = Conformance(
    "arroyo_iceberg.plugin",
    [
        SourceCase("iceberg.source", table_of_files),
        SourceCase("iceberg.source", nested_table, id="iceberg.source of lists and structs"),
        SourceCase("iceberg.source", changes_of_files, id="iceberg.source of changes"),
        LookupCase("iceberg.lookup", nested_table, rows=NESTED),
        SinkCase("iceberg.sink", sink_config(), [Stream(NESTED, "at")], visible=visible(NESTED)),
        SinkCase(
            "iceberg.sink",
            sink_config(partition_by=["day(at)", "bucket(4, id)", "truncate(1, name)"]),
            [ROWS],
            visible=visible(ROWS),
            id="iceberg.sink with partitions",
        ),
        SinkCase(
            "iceberg.sink",
            sink_config(mode="merge", keys=["word"]),
            [KEYED],
            visible=visible(KEYED),
            latest_by=["word"],
            id="iceberg.sink that merges",
        ),
        SinkCase(
            "iceberg.sink",
            sink_config(mode="overwrite_partitions", partition_by=["truncate(1, name)"]),
            [ROWS],
            visible=visible(ROWS),
            id="iceberg.sink that overwrites partitions",
        ),
    ],
)
