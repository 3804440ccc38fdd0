"""Batches of Spark streams as epochs: `foreachBatch(pipeline.on_batch(input=...))`."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from arroyo_core import Pipeline, SetupError

from .batch_driver import PLACES, Blows, kill_at_every_step, run_query
from .stream_files import FILES, assert_exact, assert_exact_rate, epochs, make_stream


@pytest.fixture
def folder(tmp_path):
    make_stream(tmp_path)
    return tmp_path


def test_each_batch_of_a_file_stream_is_an_epoch(spark, folder):
    run_query(spark, folder, Blows("none", "", 0))
    assert epochs(folder) == list(range(1, FILES + 1))
    assert_exact(folder)


@pytest.mark.timeout(600)
def test_exceptions_at_every_step_between_a_batch_and_sparks_commit_change_nothing(spark, folder):
    for batch, place in enumerate(PLACES):
        with pytest.raises(Exception, match=f"struck at {place} of batch {batch}"):
            run_query(spark, folder, Blows("raise", place, batch))
    run_query(spark, folder, Blows("none", "", 0))
    # A batch that was published is not read into another epoch.
    assert epochs(folder) == list(range(1, FILES + 1))
    assert_exact(folder)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("source", ["files", "rate"])
def test_kills_at_every_step_between_a_batch_and_sparks_commit_change_nothing(folder, source):
    kill_at_every_step(folder, source)
    if source == "files":
        assert epochs(folder) == list(range(1, FILES + 1))
        assert_exact(folder)
    else:
        assert_exact_rate(folder, len(PLACES) + 1)


def test_a_new_spark_checkpoint_on_old_state_is_refused(spark, folder):
    run_query(spark, folder, Blows("none", "", 0))
    with pytest.raises(Exception, match=r"batch 0 is of query .* has read 'bids' up to batch 6 of query"):
        run_query(spark, folder, Blows("none", "", 0), checkpoint="another")
    assert_exact(folder)


@pytest.mark.timeout(600)
def test_exceptions_at_every_step_of_a_rate_source_change_nothing(spark, folder):
    """The rows of a rate source are numbered: none may be missing, none may come twice."""
    for batch, place in enumerate((*PLACES, "after")):
        with pytest.raises(Exception, match=f"struck at {place} of batch {batch}"):
            run_query(spark, folder, Blows("raise", place, batch), source="rate")
    assert_exact_rate(folder, len(PLACES) + 1)


def test_on_batch_needs_a_node_that_takes_rows_and_a_place_for_checkpoints(folder):
    path = folder / "pipeline.yaml"
    with pytest.raises(SetupError, match="'rows' takes no rows of the run"):
        Pipeline.from_yaml(path).on_batch(input="rows")
    path.write_text(path.read_text().replace(f"url: {folder}/state, ", ""))
    with pytest.raises(SetupError, match="needs a 'checkpoint"):
        Pipeline.from_yaml(path).on_batch(input="bids")


def test_a_dataframe_that_is_not_a_batch_of_a_stream_needs_a_name_for_its_stream(spark, folder):
    frame = spark.read.parquet(str(folder / "in"))
    pipeline = Pipeline.from_yaml(folder / "pipeline.yaml")
    with pipeline.on_batch(input="bids") as feed, pytest.raises(SetupError, match="not a batch of a streaming query"):
        feed(frame, 0)
    with pipeline.on_batch(input="bids", query="by hand") as feed:
        feed(frame.limit(10), 0)
        feed(frame.limit(10), 0)
        feed(frame.limit(20), 1)
    written = pq.read_table(sorted((folder / "rows").glob("part-*.parquet")))
    assert written.num_rows == 30
