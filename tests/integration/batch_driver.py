"""Feeds a pipeline from a stream, and fails at one place: for tests that restart it.

python -m tests.integration.batch_driver FOLDER SOURCE WAY PLACE BATCH

SOURCE is `files`, which ends, or `rate`, which does not. WAY is `raise`, `kill` or `none`. It happens in BATCH, at
PLACE: `before` the batch is given, before its epoch is published (`publish`), before its sinks commit (`commit`),
before the commit is marked (`mark`), and `after` all of it, before Spark knows that the batch is done.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arroyo_core import Pipeline
from arroyo_core.runtime.steps import JobSteps
from arroyo_core.state import ParquetBackend

from .servers import SHORT_LIVED
from .stream_files import RATE_ROWS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PLACES = ("before", "publish", "commit", "mark", "after")


class BlowError(RuntimeError):
    """What `raise` raises; no retry of the job's own fixes it."""


class Blows:
    """Fails once: at a place, in a batch. Epochs of a job that has read batches 0, 1, ... are 1, 2, ..."""

    def __init__(self, way: str, place: str, batch: int) -> None:
        self.way = way
        self.place = place
        self.batch = batch
        self._undo: list[Callable[[], None]] = []

    def __enter__(self) -> Blows:
        for owner, name, place in (
            (ParquetBackend, "publish", "publish"),
            (JobSteps, "commit", "commit"),
            (ParquetBackend, "mark_committed", "mark"),
        ):
            self._patch(owner, name, place)
        return self

    def __exit__(self, *_: object) -> None:
        for undo in self._undo:
            undo()

    def strike(self, place: str, batch: int) -> None:
        if (place, batch) == (self.place, self.batch) and self.way != "none":
            if self.way == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            self.way = "none"
            raise BlowError(f"struck at {place} of batch {batch}")

    def _patch(self, owner: type, name: str, place: str) -> None:
        original = getattr(owner, name)

        def struck(this: Any, what: Any) -> Any:
            self.strike(place, getattr(what, "epoch", what) - 1)
            return original(this, what)

        setattr(owner, name, struck)
        self._undo.append(lambda: setattr(owner, name, original))


def files(spark: SparkSession, folder: Path) -> DataFrame:
    """The files of the folder, one in each batch."""
    stream = spark.readStream.schema("n bigint, price bigint, date_time timestamp").option("maxFilesPerTrigger", 1)
    return stream.parquet(str(folder / "in"))


def rate(spark: SparkSession, folder: Path) -> DataFrame:
    """Numbered rows without an end, those of each batch a second later than those before."""
    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", RATE_ROWS).option("numPartitions", 3)
    rows = stream.option("startTimestamp", 0).option("advanceMillisPerBatch", 1000).load()
    return rows.selectExpr("value as n", "value % 7 as price", "timestamp as date_time")


SOURCES = {"files": files, "rate": rate}


def run_query(
    spark: SparkSession, folder: Path, blows: Blows, *, source: str = "files", checkpoint: str = "spark-checkpoint"
) -> None:
    """Feed the pipeline of the folder from a stream, to its end if it has one; raises what the query does."""
    stream = SOURCES[source](spark, folder)
    with Pipeline.from_yaml(folder / "pipeline.yaml").on_batch(input="bids") as feed, blows:

        def on_batch(frame: Any, batch_id: int) -> None:
            blows.strike("before", batch_id)
            feed(frame, batch_id)
            blows.strike("after", batch_id)

        writer = stream.writeStream.foreachBatch(on_batch).option("checkpointLocation", str(folder / checkpoint))
        if source == "files":
            writer = writer.trigger(availableNow=True)
        writer.start().awaitTermination()


def drive(folder: Path, source: str, way: str, place: str, batch: int) -> subprocess.CompletedProcess[str]:
    """Do that in a process of its own, which may be killed."""
    return subprocess.run(
        [sys.executable, "-m", "tests.integration.batch_driver", str(folder), source, way, place, str(batch)],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"PYSPARK_PYTHON": sys.executable, "JAVA_TOOL_OPTIONS": SHORT_LIVED},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def kill_at_every_step(folder: Path, source: str) -> None:
    """One life after the other, each killed at the next place, in the next batch; the last comes to the end.

    A stream without an end is ended by an exception, in the batch after the last kill.
    """
    for batch, place in enumerate(PLACES):
        killed = drive(folder, source, "kill", place, batch)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
    if source == "files":
        done = drive(folder, source, "none", "", 0)
        assert done.returncode == 0, done.stderr
    else:
        done = drive(folder, source, "raise", "after", len(PLACES))
        assert f"struck at after of batch {len(PLACES)}" in done.stderr, done.stderr


def main(folder: str, source: str, way: str, place: str, batch: str) -> None:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.driver.host", "127.0.0.1")
    spark = builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2").getOrCreate()
    run_query(spark, Path(folder), Blows(way, place, int(batch)), source=source)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
