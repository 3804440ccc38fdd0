"""`arroyo_core.spark.apply`: a chain of operators over a DataFrame."""

from __future__ import annotations

import pytest

from arroyo_core import InvalidPipelineError, SetupError
from arroyo_core.spark import apply

from .dataframes import counted

CHAIN = """
- operator: std.filter
  config: {predicate: price > 100}
- operator: std.project
  config: {expressions: {auction: auction, double: price * 2, channel: upper(channel), at: date_time}}
"""


def test_a_chain_gives_what_spark_gives_and_runs_lazily(spark, bids):
    frame = spark.read.parquet(str(bids))
    result = apply(frame, CHAIN)
    assert result.schema.simpleString() == "struct<auction:bigint,double:bigint,channel:string,at:timestamp>"
    expected = frame.filter("price > 100").selectExpr("auction", "price * 2", "upper(channel)", "date_time")
    assert counted(result) == counted(expected)
    poisoned = frame.selectExpr("*", "cast(raise_error('read') as bigint) as poison")
    apply(poisoned, [{"operator": "std.filter", "config": {"predicate": "price > 1"}}])


def test_partitions_without_rows_are_applied_to_as_well(spark, bids):
    frame = spark.read.parquet(str(bids)).filter("auction = 1042").repartition(8, "auction")
    assert apply(frame, CHAIN).count() == frame.filter("price > 100").count()


@pytest.mark.parametrize(
    ("nodes", "error", "message"),
    [
        (
            [{"operator": "std.tumbling_window", "config": {"size": "1s", "aggregates": [{"function": "count"}]}}],
            InvalidPipelineError,
            "event time",
        ),
        (
            [{"operator": "std.updating_aggregate", "config": {"aggregates": [{"function": "count", "as": "n"}]}}],
            SetupError,
            "'node_1' .std.updating_aggregate. keeps state .*run the others in a pipeline",
        ),
        (
            [{"operator": "std.key_by", "config": {"keys": ["auction"]}}],
            SetupError,
            "rows of the same auction together",
        ),
        ([{"operator": "std.filter", "config": {"predicate": "prize > 1"}}], InvalidPipelineError, "prize"),
        ([{"operator": "std.filter", "inputs": ["x"]}], SetupError, "node 1 has inputs"),
        ([{"operator": "std.fliter"}], InvalidPipelineError, "std.filter"),
        ([], SetupError, "a list of nodes is needed"),
    ],
)
def test_what_cannot_be_applied_is_refused_before_anything_runs(spark, bids, nodes, error, message):
    with pytest.raises(error, match=message):
        apply(spark.read.parquet(str(bids)), nodes)
