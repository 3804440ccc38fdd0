"""Benchmarks of the state layer, as ratios: `python -m benchmarks.state [--keys 1000000]`.

Each line says what was measured, the ratio, and the bound where there is one. Sizes are of one subtask.
"""

from __future__ import annotations

import argparse
import gc
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from arroyo_core.api.schema import ArroyoSchema
from arroyo_core.ids import TaskInfo
from arroyo_core.proto.state_pb2 import OperatorCheckpointMetadata
from arroyo_core.state import (
    CompactionPolicy,
    LastKeyValueView,
    StorageProvider,
    TableManager,
    WarmCache,
    merge_operator_metadata,
    timestamp_table_config,
)

SCHEMA = ArroyoSchema(
    pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us", "UTC")), ("v", pa.float64())]), "ts", ("k",)
)
TABLES = {"t": timestamp_table_config("t", "last value", timedelta(days=1), True, SCHEMA)}
TASK = TaskInfo(job_id="bench", operator_id="op", operator_name="bench", task_index=0, parallelism=1)
LOOKUPS = 1_000_000
BATCH = 64 * 1024
CHANGED = 100_000


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.state", description=__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--small", type=int, default=100_000, help="keys of the table that checkpoints compare with")
    keys, small = (args := parser.parse_args()).keys, args.small
    folder = Path(tempfile.mkdtemp(prefix="bench-state-"))
    try:
        run(folder, keys, small)
    finally:
        shutil.rmtree(folder)


def run(folder: Path, keys: int, small: int) -> None:
    large_job, small_job = Job(folder / "large"), Job(folder / "small")
    for job, count in ((large_job, keys), (small_job, small)):
        job.fill(count)
    times = {}
    for name, job, count in (("small", small_job, small), ("large", large_job, keys)):
        samples = [job.change(count) for _ in range(5)]
        times[name] = statistics.median(seconds for seconds, _ in samples)
        if job is large_job:
            report(f"bytes written / bytes changed, {count:,} keys", samples[0][1] / change_bytes(count), 1.5)
    report(f"checkpoint of {CHANGED:,} changed keys: {keys:,} / {small:,} keys", times["large"] / times["small"], 1.3)
    restore(large_job, folder)
    look_up(large_job.open(None), keys)


class Job:
    """One subtask with one last-value table."""

    def __init__(self, folder: Path) -> None:
        self.storage = StorageProvider(str(folder))
        self.cache = WarmCache(f"{folder}-cache")
        self.checkpoint: OperatorCheckpointMetadata | None = None
        self.epoch = 0

    def open(self, cache: WarmCache | None) -> TableManager:
        return TableManager.open(
            task_info=TASK,
            tables=TABLES,
            storage=self.storage,
            checkpoint=self.checkpoint,
            compaction=CompactionPolicy(is_enabled=False),
            cache=cache,
        )

    def take(self, manager: TableManager) -> tuple[float, int]:
        self.epoch += 1
        begin = time.perf_counter()
        report = manager.checkpoint(self.epoch, 1, None, write_metadata=False)
        seconds = time.perf_counter() - begin
        self.checkpoint = merge_operator_metadata([report])
        return seconds, report.bytes

    def fill(self, count: int) -> None:
        manager = self.open(self.cache)
        view = manager.get_last_key_value_table("t")
        for start in range(0, count, 1_000_000):
            view.upsert(rows(np.arange(start, min(count, start + 1_000_000)), 0))
        self.take(manager)

    def change(self, count: int) -> tuple[float, int]:
        manager = self.open(self.cache)
        chosen = np.random.default_rng(self.epoch).choice(count, CHANGED, replace=False)
        manager.get_last_key_value_table("t").upsert(rows(chosen, self.epoch))
        return self.take(manager)


def rows(keys: np.ndarray, epoch: int) -> pa.RecordBatch:
    times = pa.array(np.full(len(keys), 1_700_000_000_000_000 + epoch), pa.int64()).cast(SCHEMA.schema.field("ts").type)
    values = np.random.default_rng(1).random(len(keys))
    return pa.RecordBatch.from_arrays([pa.array(keys, pa.int64()), times, pa.array(values)], schema=SCHEMA.schema)


def change_bytes(count: int) -> int:
    """The changed rows alone as Parquet writes them, without anything that state adds."""
    batch = rows(np.random.default_rng(1).choice(count, CHANGED, replace=False), 1)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_batches([batch]), sink, compression="zstd")
    return len(sink.getvalue())


def restore(job: Job, folder: Path) -> None:
    paths = sorted((folder / "large").rglob("*.parquet"))
    plain = best(lambda: [pq.read_table(path) for path in paths])
    cold = best(lambda: job.open(None).get_last_key_value_table("t"))
    job.open(job.cache).get_last_key_value_table("t")
    warm = best(lambda: job.open(job.cache).get_last_key_value_table("t"))
    report("cold restore / pyarrow.parquet.read_table of the same files", cold / plain, 2.0)
    report("warm continue / cold restore", warm / cold, 0.05)


def look_up(manager: TableManager, keys: int) -> None:
    gc.collect()
    before = pa.total_allocated_bytes()
    view: LastKeyValueView = manager.get_last_key_value_table("t")
    held = pa.total_allocated_bytes() - before
    table = view.get_all()
    report("memory of the table / its Arrow size", held / table.nbytes, None)
    asked = np.random.default_rng(3).integers(0, keys, LOOKUPS)
    batches = [
        pa.RecordBatch.from_arrays([pa.array(asked[start : start + BATCH], pa.int64())], names=["k"])
        for start in range(0, LOOKUPS, BATCH)
    ]
    ours = best(lambda: [view.get(batch) for batch in batches], repeat=2)
    connection = duckdb.connect()
    connection.register("source", pa.Table.from_batches([table]))
    connection.execute("create table state as select * from source")
    connection.execute("create index by_key on state (k)")
    duck = best(lambda: [duck_look_up(connection, batch) for batch in batches], repeat=2)
    lookup = dict(zip(table.column("k").to_pylist(), table.column("v").to_pylist(), strict=True))
    plain = best(lambda: [[lookup.get(key) for key in batch.column(0).to_pylist()] for batch in batches], repeat=2)
    print(f"lookups a second: {LOOKUPS / ours:,.0f}; DuckDB {LOOKUPS / duck:,.0f}; dict {LOOKUPS / plain:,.0f}")
    report("lookups: ours / DuckDB", duck / ours, None)
    report("lookups: ours / dict", plain / ours, None)


def duck_look_up(connection: duckdb.DuckDBPyConnection, batch: pa.RecordBatch) -> pa.Table:
    connection.register("asked", pa.Table.from_batches([batch]))
    return connection.sql("select s.* from asked a join state s using (k)").to_arrow_table()


def best(call: Callable[[], object], repeat: int = 3) -> float:
    seconds = []
    for _ in range(repeat):
        begin = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def report(what: str, ratio: float, bound: float | None) -> None:
    verdict = "" if bound is None else f"  (bound {bound}: {'ok' if ratio <= bound else 'MISSED'})"
    print(f"{what}: {ratio:.3f}{verdict}", flush=True)


if __name__ == "__main__":
    main()
