"""Delta Lake tables beside the bare library: `python -m benchmarks.delta [--rows 500000] [--epochs 6]`.

Orders of five columns on a local disk, by one subtask in this process: appended, merged and read, each beside what one
would write by hand with `deltalake`. Both sides take turns, best of three; answers are checked.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from arroyo_delta.delta_pb2 import SinkConfig, SourceConfig
from arroyo_delta.sink import DeltaSink
from arroyo_delta.sink_settings import check_sink
from arroyo_delta.source import DeltaSource
from arroyo_delta.source_settings import check_source
from arroyo_testing import ParallelHarness, SourceHarness
from deltalake import DeltaTable, write_deltalake

from arroyo_core.api import ArroyoSchema, CommitToken, with_defaults

ROUNDS = 3
BATCH = 16_384
#: Of an epoch's rows, so many change rows that the table has.
CHANGED = 0.1


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


def sink(path: str, tables: Sequence[pa.Table], **config: Any) -> float:
    """Write a table as an epoch each; how long the commits take of it, for one."""
    settings = check_sink(with_defaults(SinkConfig(table=path, if_missing="create", **config)))
    harness = ParallelHarness(lambda: DeltaSink(settings), inputs=[ArroyoSchema(tables[0].schema)])
    spent = 0.0
    for epoch, table in enumerate(tables, 1):
        for batch in table.to_batches(max_chunksize=BATCH):
            harness.process(batch)
        staged = harness.checkpoint()
        begun = time.perf_counter()
        harness.commit(staged, token=CommitToken("benchmark", 1, epoch))
        spent += time.perf_counter() - begun
        harness.restore()
    harness.close()
    return spent / len(tables)


def append_by_hand(path: str, tables: Sequence[pa.Table]) -> None:
    for table in tables:
        write_deltalake(path, table, mode="append")


def merge_by_hand(path: str, tables: Sequence[pa.Table]) -> None:
    columns = {name: f"s.{name}" for name in tables[0].column_names}
    for table in tables:
        merger = DeltaTable(path).merge(table, "t.id = s.id", source_alias="s", target_alias="t")
        merger.when_matched_update(columns).when_not_matched_insert(columns).execute()


def read_by_source(path: str) -> int:
    settings = check_source(with_defaults(SourceConfig(table=path)))
    harness = SourceHarness(lambda: DeltaSource(settings))
    rows = sum(batch.num_rows for batch in harness.run().batches)
    harness.close()
    return rows


def read_by_hand(path: str) -> int:
    return sum(batch.num_rows for batch in DeltaTable(path).to_pyarrow_dataset().to_batches())


def measure(label: str, rows: int, by_hand: Callable[[], Any], ours: Callable[[], Any]) -> None:
    best: dict[Callable[[], Any], float] = {}
    for _ in range(ROUNDS):
        for run in (by_hand, ours):
            begun = time.perf_counter()
            run()
            best[run] = min(best.get(run, float("inf")), time.perf_counter() - begun)
    rates = [rows / best[run] / 1000 for run in (by_hand, ours)]
    print(f"{label:<10}{rates[0]:>14,.0f}{rates[1]:>14,.0f}{best[ours] / best[by_hand]:>12.2f}")


def run(rows: int, epochs: int) -> None:
    tables = [orders(rows, epoch) for epoch in range(epochs)]
    changed = [table.slice(0, int(rows * CHANGED)) for table in tables]
    print(f"{'':<10}{'by hand':>14}{'arroyo-delta':>14}{'times as':>12}")
    print(f"{'':<10}{'1000 rows/s':>14}{'1000 rows/s':>14}{'long':>12}")
    with tempfile.TemporaryDirectory() as folder:
        hand, ours = str(Path(folder, "hand")), str(Path(folder, "ours"))

        def fresh(path: str, write: Callable[[str, Sequence[pa.Table]], Any]) -> None:
            shutil.rmtree(path, ignore_errors=True)
            write(path, tables)

        measure("append", rows * epochs, lambda: fresh(hand, append_by_hand), lambda: fresh(ours, sink))
        assert DeltaTable(hand).count() == DeltaTable(ours).count() == rows * epochs
        count = [0, 0]

        def read(place: int, path: str, reader: Callable[[str], int]) -> None:
            count[place] = reader(path)

        measure("read", rows * epochs, lambda: read(0, ours, read_by_hand), lambda: read(1, ours, read_by_source))
        assert count == [rows * epochs] * 2
        merged = sum(table.num_rows for table in changed)

        def merge(path: str) -> None:
            shutil.rmtree(f"{path}-merged", ignore_errors=True)
            shutil.copytree(ours, f"{path}-merged")
            if path == hand:
                merge_by_hand(f"{path}-merged", changed)
            else:
                # Epochs of another node: the first ones are known to the table.
                sink(f"{path}-merged", [changed[0].slice(0, 0)] * epochs + changed, mode="merge", keys=["id"])

        measure("merge", merged, lambda: merge(hand), lambda: merge(ours))
        assert DeltaTable(f"{hand}-merged").count() == DeltaTable(f"{ours}-merged").count() == rows * epochs
        shutil.rmtree(ours)
        print(f"a commit of one file takes {sink(ours, [table.slice(0, 1) for table in tables]) * 1000:.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.delta",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rows", type=int, default=500_000, help="of one epoch")
    parser.add_argument("--epochs", type=int, default=6)
    arguments = parser.parse_args()
    run(arguments.rows, arguments.epochs)


if __name__ == "__main__":
    main()
