"""`spark.input` without Spark: its config, and what it does with the rows that it is given."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from arroyo_core import InvalidPipelineError, Pipeline, SetupError, StopMode, StopSignal
from arroyo_core.api import Dataset, GivenPosition, GivenRows
from arroyo_core.plugin import installed_plugins
from arroyo_core.runtime.assembly import construct
from arroyo_core.runtime.given import read_position
from arroyo_core.runtime.local import LocalExecutor

PIPELINE = """
name: given
parallelism: 2
checkpoint: {url: ./state, interval: 10s}
nodes:
  - id: bids
    operator: spark.input
    config: %s
  - id: out
    operator: filesystem.sink
    inputs: [bids]
    config: {path: ./out, format: parquet}
"""

CONFIG = "{schema: {n: int64, at: timestamp}, event_time_field: at}"
ROWS = pa.record_batch({"n": pa.array(range(10)), "at": pa.array(range(10), pa.timestamp("us", "UTC"))})

#: What is not a batch of a stream.
ALL = GivenPosition()


def pipeline(folder, config=CONFIG):
    path = folder / "given.yaml"
    path.write_text(PIPELINE % config)
    return Pipeline.from_yaml(path)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def parts(position=ALL) -> Mapping[int, GivenRows]:
    """Five rows for each of two subtasks."""
    return {subtask: GivenRows((batch for batch in [ROWS.slice(subtask * 5, 5)]), position) for subtask in range(2)}


def written(folder):
    return sorted(pq.read_table(sorted((folder / "out").glob("part-*.parquet"))).column("n").to_pylist())


def test_all_that_is_given_is_read_in_one_epoch(folder):
    job = pipeline(folder)
    given = parts()
    executor = LocalExecutor(job.plugins, given=lambda _, subtask: {"bids": given[subtask]})
    result = job.run(executor=executor)
    assert (result.is_finished, result.epochs) == (True, 1)
    assert written(folder) == list(range(10))


def test_the_position_of_what_was_given_is_in_the_checkpoint(folder):
    """The driver, which decides what to give, reads it there."""
    job = pipeline(folder)
    seen = []

    class Batches(LocalExecutor):
        def run_epoch(self, plan, request):
            seen.append(read_position(plan, installed_plugins(), "bids", request))
            return super().run_epoch(plan, request)

    def give(request, subtask):
        number = 4 + request.epoch
        # What is not a batch is all that there is, and ends the job.
        position = GivenPosition("stream", number) if request.epoch < 3 else ALL
        return {"bids": parts(position)[subtask]}

    result = job.run(executor=Batches(job.plugins, given=give))
    assert (result.is_finished, result.epochs) == (True, 3)
    assert seen == [None, GivenPosition("stream", 5), GivenPosition("stream", 6)]
    assert written(folder) == sorted([*range(10)] * 3)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("{}", "schema"),
        ("{schema: {n: uint32}}", "a DataFrame has no uint32 columns: declare int64"),
        ("{schema: {n: timestamp_ms}}", "declare timestamp"),
        ("{schema: {n: int65}}", "int64"),
        ("{schema: {n: int64}, event_time_field: m}", "no column 'm'"),
        ("{schema: {n: int64}, event_time_field: n}", "column 'n' is int64, not a timestamp"),
    ],
)
def test_mistakes_are_found_without_spark(folder, config, message):
    with pytest.raises(InvalidPipelineError, match=message):
        pipeline(folder, config)


def test_a_run_without_rows_says_how_to_give_them_and_starts_no_spark(folder):
    with pytest.raises(SetupError, match=r"come with the run, .*inputs=\{'bids': df\}"):
        pipeline(folder).run(master="spark://nowhere:1")
    job = pipeline(folder)
    with pytest.raises(SetupError, match=r"inputs=\{'bids': df\}"):
        job.run(executor=LocalExecutor(job.plugins))


def test_an_epoch_that_is_given_nothing_ends_when_it_is_told_to(folder):
    job = pipeline(folder)
    stop = StopSignal()

    def give(request, subtask):
        stop.request(StopMode.GRACEFUL)
        return {}

    result = job.run(executor=LocalExecutor(job.plugins, given=give), stop=stop)
    assert (result.is_finished, result.source_rows) == (False, 0)
    given = parts()
    again = LocalExecutor(job.plugins, given=lambda _, subtask: {"bids": given[subtask]})
    assert pipeline(folder).run(executor=again).is_finished
    assert written(folder) == list(range(10))


def test_it_is_exactly_once(folder):
    from arroyo_core.pipeline.planner import plan_file

    path = folder / "given.yaml"
    path.write_text(PIPELINE % CONFIG)
    planned = plan_file(path, plugins=installed_plugins(), environment={})
    assert planned.guarantees["bids"].level == "exactly_once"
    assert "part of the checkpoint" in planned.guarantees["bids"].reason


@pytest.mark.parametrize(
    ("dataset", "expected"),
    [
        ("", []),
        ("shop.bids", [Dataset("spark", "shop.bids")]),
        ("delta.`/lake/bids`", [Dataset("spark", "delta.`/lake/bids`")]),
        ("s3://user:secret@lake/bids", [Dataset("s3://lake", "bids")]),
        ("./bids", [Dataset("file", "HERE/bids")]),
    ],
)
def test_a_catalogue_is_told_what_the_config_says_of_the_rows(folder, dataset, expected):
    config = "{schema: {n: int64, at: timestamp}, dataset: '%s'}"
    planned = pipeline(folder, config % dataset).plan
    found = construct(planned.nodes["bids"], installed_plugins()).inner.datasets()
    assert list(found) == [Dataset(each.namespace, each.name.replace("HERE", str(folder))) for each in expected]
