"""The edges of size: each a pipeline, how large it is, and what must come out."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

Nodes = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Size:
    """A share of the real size: `Size(1)` is the edge itself."""

    share: float

    def of(self, whole: int, *, least: int = 1) -> int:
        return max(least, round(whole * self.share))


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """One case. Input is made in `in`, output comes to `out`, both below the folder of the run."""

    name: str
    title: str
    parallelism: Callable[[Size], int]
    #: Rows of an epoch, of all sources.
    epoch_rows: Callable[[Size], int]
    nodes: Callable[[Size], Nodes]
    #: What the query says of the output, and what it must say.
    query: str
    expected: Callable[[Size], tuple[object, ...]]
    make_input: Callable[[Size, Path], None] = lambda size, folder: None
    settings: Mapping[str, str] | None = None

    def document(self, size: Size, folder: Path) -> dict[str, Any]:
        text = json.dumps(self.nodes(size)).replace("{folder}", f"counted://{folder}")
        return {
            "name": self.name,
            "parallelism": self.parallelism(size),
            "checkpoint": {
                "url": f"counted://{folder}/state",
                "interval": "1h",
                "rows": self.epoch_rows(size),
                "bytes": "64GiB",
                "keep": 2,
            },
            "nodes": json.loads(text),
        }

    def problem(self, size: Size, folder: Path) -> str:
        """What is wrong with the output; empty if nothing is."""
        with duckdb.connect() as db:
            db.execute("SET TimeZone = 'UTC'")
            found = db.execute(self.query.replace("{out}", f"{folder}/out")).fetchone()
        expected = self.expected(size)
        return "" if found == expected else f"the output is {found}, and should be {expected}"


def source(count: int, *, name: str = "numbers") -> dict[str, Any]:
    return {"id": name, "operator": "impulse.source", "config": {"count": count, "event_time_interval": "1ms"}}


def project(name: str, source: str, expressions: Mapping[str, str]) -> dict[str, Any]:
    return {"id": name, "operator": "std.project", "inputs": [source], "config": {"expressions": dict(expressions)}}


def sink(source: str) -> dict[str, Any]:
    return {"id": "files", "operator": "filesystem.sink", "inputs": [source], "config": {"path": "{folder}/out"}}


def keyed(name: str, source: str, key: str) -> dict[str, Any]:
    return {"id": name, "operator": "std.key_by", "inputs": [source], "config": {"keys": [key]}}


ROWS_OF_MANY = 300_000
KEYS_OF_MANY = 30_000


def many_subtasks(size: Size) -> Nodes:
    """Three shuffles, the first of them with state behind it."""
    key = f"cast(counter % {KEYS_OF_MANY} as bigint)"
    count = {"function": "count", "as": "rows"}
    window = {"size": "100s", "keys": ["key"], "aggregates": [count]}
    return [
        source(size.of(ROWS_OF_MANY, least=30_000)),
        project("rows", "numbers", {"key": key, "moment": "timestamp"}),
        {"id": "timed", "operator": "std.watermark", "inputs": ["rows"], "config": {"column": "moment"}},
        {"id": "counts", "operator": "std.tumbling_window", "inputs": ["timed"], "config": window},
        project("other", "counts", {"key": "key", "turned": "key * 7919 % 1000003", "rows": "rows"}),
        keyed("again", "other", "turned"),
        keyed("back", "again", "key"),
        sink("back"),
    ]


HASHED = "md5(cast(counter as varchar))"


def texts() -> dict[str, Any]:
    """The rows that `make_texts` wrote."""
    config = {"path": "{folder}/in", "format": "parquet", "event_time_field": "moment"}
    return {"id": "rows", "operator": "filesystem.source", "config": config}


def make_texts(rows: int, text_bytes: int, folder: Path) -> None:
    """Files of about 64 MB, with texts that cannot be compressed to less than half."""
    random = np.random.default_rng(7)
    (folder / "in").mkdir()
    per_file = max(1, 64_000_000 // text_bytes)
    for start in range(0, rows, per_file):
        keys = range(start, min(start + per_file, rows))
        table = pa.table(
            {
                "key": pa.array(keys, pa.int64()),
                "text": [random.bytes(text_bytes // 2).hex() for _ in keys],
                "moment": pa.array([key * 1000 for key in keys], pa.timestamp("us", "UTC")),
            }
        )
        pq.write_table(
            table,
            folder / "in" / f"{start:010}.parquet",
            compression="none",
            use_dictionary=False,
            row_group_size=max(1, 8_000_000 // text_bytes),
        )


COLUMN_BYTES = 3 * 2**30
TEXT_BYTES = 8192
#: This many rows of the column find a match.
MATCHES = 10


def column_rows(size: Size) -> int:
    return size.of(COLUMN_BYTES // TEXT_BYTES, least=100)


def wide_column(size: Size) -> Nodes:
    """All rows wait for matches for ever, each with a text, in one subtask."""
    return [
        texts(),
        source(MATCHES, name="few"),
        project("ones", "few", {"other": "cast(counter as bigint)", "at": "timestamp"}),
        {
            "id": "kept",
            "operator": "std.join",
            "inputs": ["rows", "ones"],
            "config": {"on": [{"left": "key", "right": "other"}], "ttl": "0s"},
        },
        project("short", "kept", {"key": "key", "size": "cast(length(text) as bigint)"}),
        sink("short"),
    ]


ROW_BYTES = 8_000_000
WIDE_ROWS = 200


def wide_count(size: Size) -> int:
    return size.of(WIDE_ROWS, least=20)


def wide_rows(size: Size) -> Nodes:
    """Through a shuffle, into state, and into files."""
    unique = {"keys": ["key"], "ttl": "0s"}
    return [
        texts(),
        {"id": "first", "operator": "std.deduplicate", "inputs": ["rows"], "config": {**unique, "keep": "last"}},
        {
            "id": "files",
            "operator": "filesystem.sink",
            "inputs": ["first"],
            "config": {"path": "{folder}/out", "format": "debezium_json"},
        },
    ]


HOT_ROWS = 5_000_000


def hot_key(size: Size) -> Nodes:
    """All rows of one side have the same key, and wait for matches for ever."""
    return [
        source(size.of(HOT_ROWS)),
        project(
            "rows",
            "numbers",
            {"key": "cast(1 as bigint)", "counter": "cast(counter as bigint)", "text": HASHED, "moment": "timestamp"},
        ),
        source(1, name="one"),
        project("ones", "one", {"other": "cast(1 as bigint)", "at": "timestamp"}),
        {
            "id": "joined",
            "operator": "std.join",
            "inputs": ["rows", "ones"],
            "config": {"on": [{"left": "key", "right": "other"}], "ttl": "0s"},
        },
        project("short", "joined", {"counter": "counter"}),
        sink("short"),
    ]


FILES = 100_000
LINES = 10


def many_files(size: Size) -> Nodes:
    config = {"path": "{folder}/in", "format": "json", "schema": {"n": "int64", "file": "int64"}}
    return [{"id": "lines", "operator": "filesystem.source", "config": config}, sink("lines")]


def make_files(size: Size, folder: Path) -> None:
    """A thousand in a folder; the disk has a block for each."""
    for file in range(size.of(FILES)):
        path = folder / "in" / f"{file // 1000:03}" / f"{file % 1000:03}.jsonl"
        if file % 1000 == 0:
            path.parent.mkdir(parents=True)
        path.write_text("".join(f'{{"n": {line}, "file": {file}}}\n' for line in range(LINES)))


def files_expected(size: Size) -> tuple[object, ...]:
    files = size.of(FILES)
    return files * LINES, files, files * (files - 1) // 2 * LINES


EDGES = {
    edge.name: edge
    for edge in (
        Edge(
            name="parallelism",
            title="300 subtasks, three shuffles",
            parallelism=lambda size: size.of(300, least=8),
            epoch_rows=lambda size: size.of(ROWS_OF_MANY, least=30_000) // 3,
            nodes=many_subtasks,
            query="SELECT sum(rows)::bigint, count(DISTINCT key) FROM '{out}/*.parquet'",
            expected=lambda size: (size.of(ROWS_OF_MANY, least=30_000), KEYS_OF_MANY),
        ),
        Edge(
            name="wide_column",
            title="a column of 3 GiB in one subtask's state",
            parallelism=lambda size: 1,
            epoch_rows=lambda size: column_rows(size) // 8,
            nodes=wide_column,
            query="SELECT count(*), sum(size)::bigint FROM '{out}/*.parquet'",
            expected=lambda size: (MATCHES, MATCHES * TEXT_BYTES),
            make_input=lambda size, folder: make_texts(column_rows(size), TEXT_BYTES, folder),
        ),
        Edge(
            name="wide_rows",
            title="rows of 8 MB, through a shuffle, state and files",
            parallelism=lambda size: 2,
            epoch_rows=lambda size: wide_count(size) // 4,
            nodes=wide_rows,
            query="""
                SELECT count(*), sum(length(after.text))::bigint
                FROM read_json('{out}/*.jsonl', format = 'newline_delimited', maximum_object_size = 100000000,
                    columns = {after: 'STRUCT(text VARCHAR)'})
            """,
            expected=lambda size: (wide_count(size), wide_count(size) * ROW_BYTES),
            make_input=lambda size, folder: make_texts(wide_count(size), ROW_BYTES, folder),
        ),
        Edge(
            name="hot_key",
            title="one key with 5 million rows in state",
            parallelism=lambda size: 2,
            epoch_rows=lambda size: size.of(HOT_ROWS) // 8,
            nodes=hot_key,
            query="SELECT count(*), sum(counter)::bigint FROM '{out}/*.parquet'",
            expected=lambda size: (size.of(HOT_ROWS), size.of(HOT_ROWS) * (size.of(HOT_ROWS) - 1) // 2),
        ),
        Edge(
            name="files",
            title="100,000 input files",
            parallelism=lambda size: 2,
            epoch_rows=lambda size: size.of(FILES) * LINES // 8,
            nodes=many_files,
            query="SELECT count(*), count(DISTINCT file), sum(file)::bigint FROM '{out}/*.parquet'",
            expected=files_expected,
            make_input=make_files,
        ),
    )
}
