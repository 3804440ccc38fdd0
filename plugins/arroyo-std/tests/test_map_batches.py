"""std.map_batches: rows of rows, by a user function."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from arroyo_std.plugin import arroyo_register
from arroyo_testing import OperatorHarness
from google.protobuf.json_format import ParseDict

from arroyo_core.api import ArroyoSchema, Registry, with_defaults
from arroyo_core.api.updating import UPDATING_META
from arroyo_core.errors import ConfigError, OperatorError
from arroyo_core.udf import batch_udf, udf

TIME = pa.timestamp("us", tz="UTC")
STREAM = ArroyoSchema(pa.schema({"n": pa.int64(), "at": TIME}), "at", ("n",))


@batch_udf(schema=lambda schema: schema.append(pa.field("inverse", pa.float64())))
def inverses(batch: pa.RecordBatch) -> pa.RecordBatch:
    numbers = batch.column("n").cast(pa.float64())
    return batch.append_column("inverse", pc.divide_checked(pa.scalar(1.0), numbers))


@batch_udf
def odd_ones(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.filter(pc.equal(pc.bit_wise_and(batch.column("n"), 1), 1))


@batch_udf(schema=pa.schema({"n": pa.int64()}))
def without_time(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.select(["n"])


@batch_udf(schema=lambda schema: schema.field("zz"))
def no_schema(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch


@udf
def plain(number: int) -> int:
    return number


@pytest.fixture(scope="module")
def make():
    registry = Registry()
    arroyo_register(registry)
    for function in (inverses, odd_ones, without_time, no_schema, plain):
        registry.add_udf(function)

    def make(function: str, **config: Any) -> Any:
        constructor = registry.constructors["std.map_batches"]
        return constructor.with_config(
            with_defaults(ParseDict({"function": function, **config}, constructor.config_type())), registry
        )

    return make


def batch(*numbers: int) -> pa.RecordBatch:
    times = pa.array(range(len(numbers)), pa.int64()).cast(TIME)
    return pa.RecordBatch.from_arrays([pa.array(numbers, pa.int64()), times], schema=STREAM.schema)


def test_columns_are_added_and_the_event_time_stays(make):
    with OperatorHarness(make("inverses"), inputs=[STREAM]) as harness:
        assert harness.output_schema.timestamp_column == "at"
        assert harness.output_schema.key_columns is None
        harness.process(batch(1, 2))
        assert harness.output.column("inverse").to_pylist() == [1.0, 0.5]


def test_rows_may_go(make):
    with OperatorHarness(make("odd_ones"), inputs=[STREAM]) as harness:
        harness.process(batch(2, 4))
        harness.process(batch(1, 2, 3))
        assert harness.output.column("n").to_pylist() == [1, 3]


def test_rows_that_fail_are_found(make):
    failing = pytest.raises(OperatorError, match="UDF 'inverses': ArrowInvalid: divide by zero")
    with OperatorHarness(make("inverses"), inputs=[STREAM]) as harness, failing:
        harness.process(batch(1, 0))
    with OperatorHarness(make("inverses", onError="null"), inputs=[STREAM]) as harness:
        harness.process(batch(1, 0, 2))
        assert harness.output.column("n").to_pylist() == [1, 0, 2]
        assert harness.output.column("at").null_count == 0
        assert harness.output.column("inverse").to_pylist() == [1.0, None, 0.5]
        assert harness.counters["failed_rows"] == 1
    with OperatorHarness(make("inverses", onError="dead_letter"), inputs=[STREAM]) as harness:
        harness.process(batch(1, 0, 2))
        assert harness.output.column("inverse").to_pylist() == [1.0, 0.5]
        (letter,) = harness.side_output("errors").to_pylist()
        assert letter["n"] == 0
        assert letter["_error"].startswith("UDF 'inverses': ArrowInvalid: divide by zero")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("inverse", "no user function 'inverse'"),
        ("plain", "function 'plain' is not declared with @batch_udf"),
        ("without_time", "the input has its event time in column 'at', which 'without_time' does not declare"),
        ("no_schema", "UDF 'no_schema': KeyError"),
    ],
)
def test_a_mistake_is_named_at_its_field(make, function, message):
    with pytest.raises(ConfigError, match=message) as caught:
        make(function).operator.output_schema([STREAM])
    assert caught.value.field == "function"
    if function == "inverse":
        assert caught.value.suggestion == "inverses"


def test_a_stream_without_event_time_needs_none(make):
    stream = ArroyoSchema(pa.schema({"n": pa.int64()}))
    assert make("without_time").operator.output_schema([stream]).names == ["n"]


def test_what_makes_a_stream_updating_must_stay(make):
    meta = pa.struct({"is_retract": pa.bool_(), "id": pa.binary(16)})
    stream = ArroyoSchema(pa.schema({"n": pa.int64(), UPDATING_META: meta}))
    with pytest.raises(ConfigError, match="what makes it updating"):
        make("without_time").operator.output_schema([stream])
