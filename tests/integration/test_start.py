"""Jobs that are declared in Python and started in a thread, on a real Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from arroyo_core import OperatorError, Pipeline, Stream

from ..waiting import wait_until
from .conftest import assert_same_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("execution", ["jobs", "live"])
def test_a_started_job_uses_the_active_session_and_leaves_it(
    spark: SparkSession, bids: Path, tmp_path: Path, execution: str
) -> None:
    source = Stream.source("filesystem.source", path=bids, format="parquet", batch_rows=5000, id="bids")
    keyed = source.key_by(["auction"], id="keyed")
    end = keyed.sink("filesystem.sink", path=tmp_path / "out", format="parquet", id="files")
    pipeline = Pipeline.build(
        end, name="started", parallelism=2, checkpoint={"url": tmp_path / "state", "rows": 50_000}, execution=execution
    )
    job = pipeline.start(preview=["keyed"], preview_rows=7)
    assert job.await_end(300).is_finished
    assert assert_same_rows(tmp_path / "out", "select * from bids", bids=bids) == 200_000
    progress = job.progress
    assert (progress.state, progress.source_rows) == ("finished", 200_000)
    assert len(job.latest(7, "keyed")) == 7
    assert 0 < job.latest(1, "keyed").epoch <= progress.epoch
    assert spark.range(3).count() == 3
    assert progress.spark_ui == (spark.sparkContext.uiWebUrl or "")


def test_a_job_that_never_ends_is_watched_and_stopped(spark: SparkSession, tmp_path: Path) -> None:
    numbers = Stream.source("impulse.source", rate=1000, id="numbers")
    pipeline = Pipeline.build(numbers.blackhole(id="out"), name="endless", checkpoint={"interval": "200ms"})
    with pipeline.start(spark) as job:
        wait_until(lambda: job.progress.epochs >= 2)
        assert job.progress.rows_per_s > 0
        assert len(job.latest(5)) == 5
    assert job.progress.state == "stopped"


def test_a_failure_on_an_executor_is_raised_where_the_job_is_awaited(spark: SparkSession, tmp_path: Path) -> None:
    numbers = Stream.source("impulse.source", count=100)
    job = Pipeline.build(numbers.filter("counter / (counter - 3) > 0").blackhole(), name="failing").start(spark)
    with pytest.raises(OperatorError, match=r"[Dd]ivide by zero"):
        job.await_end(300)
    assert job.progress.state == "failed"
