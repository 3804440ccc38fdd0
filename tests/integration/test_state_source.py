"""State tables as DataFrames: `spark.read.format("arroyo_state")`."""

from __future__ import annotations

from collections import Counter

import pytest

from arroyo_core import Pipeline
from arroyo_core.runtime.local import LocalExecutor
from arroyo_core.spark import StateSource
from arroyo_core.state import ParquetBackend, get_storage_provider
from arroyo_core.state.inspection import read_table

TOTALS = """
name: totals
parallelism: 2
checkpoint: {url: %s, rows: 2000}
nodes:
  - {id: bids, operator: nexmark.source, config: {events: 10000, fields: [auction, price, date_time]}}
  - id: last
    operator: std.updating_aggregate
    inputs: [bids]
    config: {keys: [auction], aggregates: [{function: count, as: bids}], ttl: 0s}
  - {id: out, operator: std.blackhole, inputs: [last]}
"""


@pytest.fixture(scope="module")
def state(spark, tmp_path_factory):
    spark.dataSource.register(StateSource)
    folder = tmp_path_factory.mktemp("totals")
    path = folder / "totals.yaml"
    path.write_text(TOTALS % (folder / "state"))
    pipeline = Pipeline.from_yaml(path)
    pipeline.run(executor=LocalExecutor(pipeline.plugins))
    return folder / "state"


@pytest.mark.parametrize("table", ["last.a", "bids.s"])
def test_a_table_is_what_a_restart_would_read_at_each_epoch(spark, state, table):
    backend = ParquetBackend(get_storage_provider(str(state)), "totals")
    epochs = backend.list_epochs()
    assert len(epochs) > 2
    for epoch in (epochs[0], epochs[-1]):
        metadata = backend.load_checkpoint_metadata("totals", epoch)
        expected = read_table(backend.storage, metadata, *table.split("."))
        read = spark.read.format("arroyo_state").option("table", table).option("epoch", epoch).load(str(state))
        assert read.columns == expected.schema.names
        assert Counter(map(repr, read.toArrow().to_pylist())) == Counter(map(repr, expected.to_pylist()))
        assert expected.num_rows


def test_a_table_of_several_files_is_read_in_parts_that_have_no_row_twice(spark, state):
    read = spark.read.format("arroyo_state").option("table", "last.a").load(str(state))
    assert read.rdd.getNumPartitions() > 1
    assert read.count() == read.select("auction").distinct().count()
    assert read.agg({"bids__count": "sum"}).collect()[0][0] == 9200


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "the option 'table' is needed .tables: bids.s, last.a, last.t"),
        ({"table": "last.b"}, "no table 'last.b'"),
        ({"table": "last.a", "epoch": "99"}, "no checkpoint 99"),
        ({"table": "last.a", "epok": "1"}, "no option 'epok'"),
        ({"table": "last.a", "job": "other"}, "job 'other' has no checkpoints"),
    ],
)
def test_what_is_not_there_is_said_with_what_is(spark, state, options, message):
    with pytest.raises(Exception, match=message):
        spark.read.format("arroyo_state").options(**options).load(str(state)).collect()


def test_nothing_can_be_written(spark, state):
    with pytest.raises(Exception, match=r"(?i)write|append|unsupported"):
        spark.range(1).write.format("arroyo_state").mode("append").save(str(state))
