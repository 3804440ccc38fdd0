"""What an epoch costs beside the Spark job it runs on: two waves, one shuffle, no rows.

Bare jobs of the same shape run in the same session, one after every epoch, so that both
see the same machine.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import yaml
from cases import PARALLELISM
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from arroyo_core import Pipeline
from arroyo_core.runtime.frames import FRAME_DDL, FRAME_SCHEMA
from arroyo_core.runtime.results import EpochResult, JobResult
from arroyo_core.runtime.stop import StopSignal
from arroyo_core.spark.session import create_session

#: The first epochs start Python workers and compile code.
WARM_UP = 5


def pipeline(scratch: Path) -> dict[str, object]:
    """A source that emits nothing in the time of a run, a shuffle, and a sink."""
    return {
        "name": "bench_empty",
        "parallelism": PARALLELISM,
        "checkpoint": {"url": f"{scratch}/state", "interval": "1ms"},
        "nodes": [
            {"id": "ticks", "operator": "impulse.source", "config": {"rate": 1e-6}},
            {"id": "keyed", "operator": "std.key_by", "inputs": ["ticks"], "config": {"keys": ["counter"]}},
            {"id": "nowhere", "operator": "std.blackhole", "inputs": ["keyed"]},
        ],
    }


def bare_job(spark: SparkSession) -> None:
    """One row from every first task to every second one, and one from there to the driver."""

    def first(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        for target in range(PARALLELISM):
            yield pa.RecordBatch.from_pylist([_row(target)], schema=FRAME_SCHEMA)

    def second(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        yield pa.RecordBatch.from_pylist([_row(0)], schema=FRAME_SCHEMA)

    frames = spark.range(0, PARALLELISM, 1, PARALLELISM).mapInArrow(first, FRAME_DDL)
    frames.repartitionById(PARALLELISM, sql.col("target")).mapInArrow(second, FRAME_DDL).collect()


def _row(target: int) -> dict[str, object]:
    numbers = dict.fromkeys(("chain", "input", "sender", "attempt", "seq", "kind"), 0)
    return {"target": target, **numbers, "payload": b""}


class Alternation:
    """Times the epochs of a job, and a bare job after each of them."""

    def __init__(self, spark: SparkSession, stop: StopSignal, epochs: int) -> None:
        self._spark = spark
        self._stop = stop
        self._epochs = epochs + WARM_UP
        self._started = time.perf_counter()
        self.epoch_s: list[float] = []
        self.bare_s: list[float] = []

    def on_start(self, job: JobResult) -> None:
        self._started = time.perf_counter()

    def on_epoch(self, result: EpochResult, job: JobResult) -> None:
        if result.source_rows:
            raise RuntimeError(f"epoch {result.epoch} is not empty: it has {result.source_rows} rows")
        ended = time.perf_counter()
        self.epoch_s.append(ended - self._started)
        bare_job(self._spark)
        self.bare_s.append(time.perf_counter() - ended)
        if len(self.epoch_s) >= self._epochs:
            self._stop.request()
        self._started = time.perf_counter()


def main() -> None:
    scratch, result, epochs = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    file = scratch / "empty.yaml"
    file.write_text(yaml.safe_dump(pipeline(scratch), sort_keys=False))
    session = create_session("bench", master=f"local[{PARALLELISM}]")
    stop = StopSignal()
    alternation = Alternation(session, stop, epochs)
    Pipeline.from_yaml(file).run(session, listener=alternation, stop=stop)
    result.write_text(json.dumps({"epoch_s": alternation.epoch_s[WARM_UP:], "bare_s": alternation.bare_s[WARM_UP:]}))
    session.stop()


if __name__ == "__main__":
    main()
