"""The source, the sink and every format keep the rules of `arroyo_testing.conformance`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from arroyo_testing.conformance import Conformance, FormatCase, SinkCase, SourceCase, Stream

ROWS = pa.table(
    {
        "id": pa.array(range(12), pa.int64()),
        "name": pa.array(["a", "b", None, "d", "e, f", 'g "h"', "", "i", "j", "ü", "l", "m"], pa.string()),
        "price": pa.array([1.5, None, 3.0, -4.25, 0.0, 6.0, 7.0, 1e300, 9.0, 10.0, 11.0, 12.0], pa.float64()),
        "ok": pa.array([True, False, None] * 4, pa.bool_()),
        "at": pa.array([second * 1_000_000 for second in range(12)], pa.timestamp("us", "UTC")),
    }
)
NESTED = ROWS.append_column("tags", pa.array([["x", None], [], None] * 4, pa.list_(pa.string()))).append_column(
    "place", pa.array([{"x": 1, "y": "a"}, None, {"x": None, "y": ""}] * 4)
)
TYPES = {"id": "int64", "name": "string", "price": "float64", "ok": "bool", "at": "timestamp"}


def parquet_files(folder: Path) -> dict[str, Any]:
    """Three files, of which one has several row groups."""
    data = folder / "data"
    data.mkdir()
    for number, rows in enumerate((ROWS.slice(0, 5), ROWS.slice(5, 1), ROWS.slice(6))):
        pq.write_table(rows, data / f"{number}.parquet", row_group_size=2)
    return {"path": str(data), "event_time_field": "at"}


def json_lines(folder: Path) -> dict[str, Any]:
    """Lines of which two are bad."""
    path = folder / "rows.jsonl"
    path.write_text("".join(f'{{"id": {number}, "name": "n{number}"}}\n' for number in range(20)) + "no JSON\n[1]\n")
    schema = {"id": "int64", "name": "string"}
    return {"path": str(path), "schema": schema, "bad_data": "drop", "split_size": 40}


def watched_files(folder: Path) -> dict[str, Any]:
    """Files of a folder that is looked at until nothing more can come."""
    config = parquet_files(folder)
    return {**config, "format": "parquet", "watch": "1s", "order": "name", "until": "now", "schema": TYPES}


def sink_folder(**config: Any) -> Any:
    return lambda folder: {"path": str(folder / "out"), **config}


def written(folder: Path) -> pa.Table:
    """What a reader sees: the files under their final names."""
    return ds.dataset(folder / "out", format="parquet", partitioning="hive").to_table()


def without_hours(folder: Path) -> pa.Table:
    """The columns of the files, and not that of their folders."""
    found = written(folder)
    return found.select([name for name in found.column_names if name != "at_hour"])


def format_case(name: str, rows: pa.Table, *, sink: dict[str, Any] | None = None, source: Any = None) -> FormatCase:
    return FormatCase(
        name,
        sink=("filesystem.sink", sink_folder(format=name, **(sink or {}))),
        source=("filesystem.source", sink_folder(format=name, **(source or {}))),
        rows=rows,
    )


#: CSV tells no empty text from null.
CSV_ROWS = ROWS.filter(pa.array([value != "" for value in ROWS.column("name").to_pylist()]))

conformance = Conformance(
    "arroyo_filesystem.plugin",
    [
        SourceCase("filesystem.source", parquet_files),
        SourceCase("filesystem.source", json_lines, id="filesystem.source of lines"),
        SourceCase("filesystem.source", watched_files, idles=True, id="filesystem.source that watches"),
        SinkCase("filesystem.sink", sink_folder(format="parquet"), [Stream(ROWS, "at")], visible=written),
        SinkCase(
            "filesystem.sink",
            sink_folder(partition_by=["id"], max_open_files=2),
            [ROWS.select(["name", "id"])],
            visible=written,
            id="filesystem.sink with partitions",
        ),
        SinkCase(
            "filesystem.sink",
            sink_folder(partition_by=["hour(at)"], min_file_size=1, max_open_files=1, sort_by=["-id"]),
            [Stream(ROWS, "at")],
            visible=without_hours,
            id="filesystem.sink that holds rows",
        ),
        SinkCase(
            "filesystem.sink",
            sink_folder(
                partition_by=["hour(at)"],
                close_at_watermark=True,
                min_file_size=1,
                file_name="{time}-{partition}-{uuid}",
            ),
            [Stream(ROWS, "at")],
            visible=without_hours,
            id="filesystem.sink that closes folders",
        ),
        format_case("parquet", NESTED),
        format_case("arrow", NESTED),
        format_case("json", ROWS, source={"schema": TYPES}),
        format_case("csv", CSV_ROWS, source={"schema": TYPES}),
    ],
)
