"""`spark.sink`: Spark's own writer commits what an epoch has staged."""

from __future__ import annotations

import pytest
from arroyo_spark.staging import EpochFiles

from arroyo_core import OperatorError, Pipeline
from arroyo_core.errors import SetupError
from arroyo_core.state import ParquetBackend

from .dataframes import counted, spark_windows, windows

FILES = """
name: copied
parallelism: 2
checkpoint: {url: %(folder)s/state, rows: 60000}
nodes:
  - id: bids
    operator: filesystem.source
    config: {path: %(bids)s, batch_rows: 5000}
  - id: out
    operator: spark.sink
    inputs: [bids]
    config: {path: %(folder)s/out, format: parquet, mode: %(mode)s, staging: %(folder)s/staging}
"""


def copying(folder, bids, *, mode):
    path = folder / "copied.yaml"
    path.write_text(FILES % {"folder": folder, "bids": bids, "mode": mode})
    return Pipeline.from_yaml(path)


def test_windows_of_a_dataframe_go_to_a_table_of_the_catalog(spark, bids, tmp_path):
    frame = spark.read.parquet(str(bids))
    path = windows(tmp_path / "job")
    sink = f"config: {{path: {tmp_path}/job/out, format: parquet}}"
    assert sink in path.read_text()
    config = f"config: {{table: bridged.sums, format: parquet, staging: {tmp_path}/staging}}"
    path.write_text(path.read_text().replace("filesystem.sink", "spark.sink").replace(sink, config))
    spark.sql(f"create database bridged location 'file://{tmp_path}/warehouse'")
    try:
        Pipeline.from_yaml(path).run(spark, inputs={"bids": frame})
        sums = spark.table("bridged.sums").select("auction", "window_start", "bids", "total", "channel")
        assert counted(sums) == spark_windows(frame)
    finally:
        spark.sql("drop database bridged cascade")
    assert not list((tmp_path / "staging").rglob("*.parquet"))


def test_overwrite_replaces_what_was_there_with_the_first_epoch_only(spark, bids, tmp_path):
    frame = spark.read.parquet(str(bids))
    frame.limit(7).write.parquet(str(tmp_path / "out"))
    result = copying(tmp_path, bids, mode="overwrite").run(spark)
    assert result.epochs > 2
    assert counted(spark.read.parquet(str(tmp_path / "out"))) == counted(frame)


def test_live_workers_leave_a_slot_for_its_commits(spark, bids, tmp_path, caplog):
    """Two slots, and two subtasks: a commit would wait for a worker to end, and the worker for the commit."""
    pipeline = copying(tmp_path, bids, mode="append")
    with pytest.raises(SetupError, match="and a sink that commits by Spark jobs of its own"):
        pipeline.run(spark, execution="live")
    pipeline.run(spark, execution="auto")
    assert "each epoch is a Spark job: Spark runs 2 tasks at once" in caplog.text
    assert counted(spark.read.parquet(str(tmp_path / "out"))) == counted(spark.read.parquet(str(bids)))


def test_it_commits_beside_a_live_worker(spark, bids, tmp_path):
    copying(tmp_path, bids, mode="append")
    text = (tmp_path / "copied.yaml").read_text()
    (tmp_path / "copied.yaml").write_text(text.replace("parallelism: 2", "parallelism: 1\nexecution: live"))
    result = Pipeline.from_yaml(tmp_path / "copied.yaml").run(spark)
    assert result.epochs > 2
    assert counted(spark.read.parquet(str(tmp_path / "out"))) == counted(spark.read.parquet(str(bids)))


def test_a_failure_before_the_commit_is_marked_does_not_write_the_epoch_again(spark, bids, tmp_path, monkeypatch):
    strike_once(monkeypatch, ParquetBackend, "mark_committed")
    with pytest.raises(ValueError, match="struck"):
        copying(tmp_path, bids, mode="append").run(spark)
    copying(tmp_path, bids, mode="append").run(spark)
    assert counted(spark.read.parquet(str(tmp_path / "out"))) == counted(spark.read.parquet(str(bids)))


def test_a_failure_right_after_sparks_write_repeats_that_epoch_and_loses_nothing(spark, bids, tmp_path, monkeypatch):
    """At least once, as it says: nobody can ask Spark whether it has written an epoch."""
    strike_once(monkeypatch, EpochFiles, "note_written")
    with pytest.raises(OperatorError, match="struck"):
        copying(tmp_path, bids, mode="append").run(spark)
    copying(tmp_path, bids, mode="append").run(spark)
    written, expected = counted(spark.read.parquet(str(tmp_path / "out"))), counted(spark.read.parquet(str(bids)))
    assert not expected - written
    assert 0 < sum((written - expected).values()) < 100_000


def strike_once(monkeypatch, owner, name):
    """Its second call fails, the first of those that follow an epoch that is whole."""
    original, calls = getattr(owner, name), []

    def struck(*arguments):
        calls.append(name)
        if len(calls) == 2:
            raise ValueError("struck")
        return original(*arguments)

    monkeypatch.setattr(owner, name, struck)


def test_a_table_that_spark_cannot_write_is_an_error_in_one_sentence(spark, bids, tmp_path):
    pipeline = copying(tmp_path, bids, mode="append")
    text = (tmp_path / "copied.yaml").read_text().replace("format: parquet", "format: no_such_format")
    (tmp_path / "copied.yaml").write_text(text)
    pipeline = Pipeline.from_yaml(tmp_path / "copied.yaml")
    with pytest.raises(Exception, match=r"Spark could not write to .*no_such_format"):
        pipeline.run(spark, max_restarts=0)
