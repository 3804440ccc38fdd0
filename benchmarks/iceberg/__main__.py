"""Iceberg tables beside the bare library: `python -m benchmarks.iceberg [--rows 500000] [--epochs 6]`.

Orders of five columns on a local disk, with a catalog in SQLite, by one subtask in this process: appended, read and
merged, each beside what one would write by hand with `pyiceberg`. Both sides take turns, best of three; answers are
checked.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from arroyo_iceberg.catalog import check_catalog, read_table_name
from arroyo_iceberg.iceberg_pb2 import Catalog, SinkConfig, SourceConfig
from arroyo_iceberg.sink import IcebergSink
from arroyo_iceberg.sink_settings import check_sink
from arroyo_iceberg.source import IcebergSource
from arroyo_iceberg.source_settings import check_source, resolve_source
from arroyo_testing import ParallelHarness, SourceHarness
from google.protobuf import json_format
from pyiceberg.table import Table

from arroyo_core.api import ArroyoSchema, with_defaults

ROUNDS = 3
BATCH = 65_536
#: Of an epoch's rows, so many change rows that the table has. The library compares them key by key.
CHANGED = 0.002
#: Makes ready what it needs, and gives what is timed.
Side: TypeAlias = Callable[[], Callable[[], Any]]


def orders(rows: int, epoch: int) -> pa.Table:
    dice = np.random.default_rng(epoch)
    return pa.table(
        {
            "id": np.arange(epoch * rows, (epoch + 1) * rows),
            "customer": dice.integers(0, 1_000_000, rows),
            "total": dice.random(rows),
            "country": pa.array([f"c{number % 200}" for number in range(rows)]),
            "placed_at": pa.array(np.arange(rows) * 1000, pa.int64()).cast(pa.timestamp("us", "UTC")),
        }
    )


class Lake:
    """A catalog in a folder; every table in it is a new one."""

    def __init__(self, folder: str) -> None:
        self.config = {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"{folder}/warehouse"}
        self._settings = check_catalog(with_defaults(json_format.ParseDict(self.config, Catalog())))
        self._numbers = count()

    def load(self, name: str) -> Table:
        return self._settings.load(read_table_name(name))

    def create(self, schema: pa.Schema) -> str:
        """The name of an empty table."""
        catalog = self._settings.open()
        catalog.create_namespace_if_not_exists("bench")
        name = f"bench.t{next(self._numbers)}"
        catalog.create_table(name, schema)
        return name


def by_sink(lake: Lake, name: str, tables: Sequence[pa.Table], **config: Any) -> float:
    """Write a table as an epoch each; how long the commits take of it, for one."""
    written = {"catalog": lake.config, "table": name, **config}
    settings = check_sink(with_defaults(json_format.ParseDict(written, SinkConfig())))
    spent = 0.0
    with ParallelHarness(lambda: IcebergSink(settings), inputs=[ArroyoSchema(tables[0].schema)]) as harness:
        for table in tables:
            for batch in table.to_batches(max_chunksize=BATCH):
                harness.process(batch)
            staged = harness.checkpoint()
            begun = time.perf_counter()
            harness.commit(staged)
            spent += time.perf_counter() - begun
            harness.restore()
    return spent / len(tables)


def append_by_hand(lake: Lake, name: str, tables: Sequence[pa.Table]) -> None:
    for table in tables:
        lake.load(name).append(table)


def merge_by_hand(lake: Lake, name: str, tables: Sequence[pa.Table]) -> None:
    for table in tables:
        lake.load(name).upsert(table, join_cols=["id"])


def read_by_source(lake: Lake, name: str) -> int:
    written = {"catalog": lake.config, "table": name}
    config = with_defaults(json_format.ParseDict(written, SourceConfig()))
    settings = check_source(resolve_source(config))
    harness = SourceHarness(lambda: IcebergSource(settings))
    rows: int = sum(batch.num_rows for batch in harness.run().batches)
    harness.close()
    return rows


def read_by_hand(lake: Lake, name: str) -> int:
    rows: int = sum(batch.num_rows for batch in lake.load(name).scan().to_arrow_batch_reader())
    return rows


def measure(label: str, rows: int, by_hand: Side, ours: Side) -> None:
    best: dict[Side, float] = {}
    for _ in range(ROUNDS):
        for side in (by_hand, ours):
            run = side()
            begun = time.perf_counter()
            run()
            best[side] = min(best.get(side, float("inf")), time.perf_counter() - begun)
    rates = [rows / best[side] / 1000 for side in (by_hand, ours)]
    print(f"{label:<10}{rates[0]:>14,.1f}{rates[1]:>16,.1f}{best[ours] / best[by_hand]:>12.2f}", flush=True)


def run(rows: int, epochs: int) -> None:
    tables = [orders(rows, epoch) for epoch in range(epochs)]
    schema, total = tables[0].schema, rows * epochs
    step = max(1, round(1 / CHANGED))
    changed = [table.take(np.arange(0, rows, step)) for table in tables]
    merged = sum(table.num_rows for table in changed)
    print(f"{'':<10}{'by hand':>14}{'arroyo-iceberg':>16}{'times as':>12}")
    print(f"{'':<10}{'1000 rows/s':>14}{'1000 rows/s':>16}{'long':>12}")
    with tempfile.TemporaryDirectory() as folder:
        lake = Lake(folder)
        written: list[str] = []

        def on_table(write: Callable[[str], Any], *, first: Sequence[pa.Table] = ()) -> Side:
            def make_ready() -> Callable[[], Any]:
                name = lake.create(schema)
                written.append(name)
                append_by_hand(lake, name, first)
                return lambda: write(name)

            return make_ready

        measure(
            "append",
            total,
            on_table(lambda name: append_by_hand(lake, name, tables)),
            on_table(lambda name: by_sink(lake, name, tables)),
        )
        assert [read_by_hand(lake, name) for name in written] == [total] * len(written)
        found: list[int] = []
        source = written[-1]
        measure(
            "read",
            total,
            lambda: lambda: found.append(read_by_hand(lake, source)),
            lambda: lambda: found.append(read_by_source(lake, source)),
        )
        assert found == [total] * len(found)
        written.clear()
        merge = {"mode": "merge", "keys": ["id"]}
        measure(
            "merge",
            merged,
            on_table(lambda name: merge_by_hand(lake, name, changed), first=tables),
            on_table(lambda name: by_sink(lake, name, changed, **merge), first=tables),
        )
        assert [read_by_hand(lake, name) for name in written] == [total] * len(written)
        commit = by_sink(lake, lake.create(schema), [table.slice(0, 1) for table in tables])
        print(f"a commit of one file takes {commit * 1000:.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.iceberg",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rows", type=int, default=500_000, help="of one epoch")
    parser.add_argument("--epochs", type=int, default=6)
    arguments = parser.parse_args()
    run(arguments.rows, arguments.epochs)


if __name__ == "__main__":
    main()
