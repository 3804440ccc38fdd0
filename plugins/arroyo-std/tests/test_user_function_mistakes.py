"""Wrong calls of user functions in a pipeline file: found before anything runs, at their line and column."""

from __future__ import annotations

import pyarrow as pa
import pytest
from arroyo_std.plugin import arroyo_register
from arroyo_testing import run_in_process
from google.protobuf import struct_pb2

from arroyo_core.api import ArroyoSchema, ConstructedOperator, OperatorConstructor, Registry, SourceOperator
from arroyo_core.errors import InvalidPipelineError
from arroyo_core.plugin import PluginSet
from arroyo_core.udf import async_udf, batch_udf, udaf, udf


class Nothing(SourceOperator):
    def name(self):
        return "test.nothing"

    def output_schema(self, inputs):
        return ArroyoSchema(pa.schema({"k": pa.string(), "v": pa.int64(), "at": pa.timestamp("us")}), "at")

    def run(self, ctx, collector):
        raise AssertionError("nothing runs")


class NothingConstructor(OperatorConstructor[struct_pb2.Struct]):
    config_type = struct_pb2.Struct

    def with_config(self, config, registry):
        return ConstructedOperator.from_source(Nothing())


@udf
def clean(text: str) -> str:
    return text.strip()


@udaf
class Total:
    def init(self) -> int:
        return 0

    def update(self, state: int, value: int) -> int:
        return state + value

    def merge(self, first: int, second: int) -> int:
        return first + second

    def finish(self, state: int) -> int:
        return state


@async_udf
async def look_up(key: str) -> str:
    return key


@batch_udf(schema=pa.schema({"k": pa.string()}))
def keys_only(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.select(["k"])


PIPELINE = """\
name: mistakes
nodes:
  - {id: rows, operator: test.nothing}
  - id: called
    operator: std.OPERATOR
    inputs: [rows]
    config:
      CONFIG
  - {id: end, operator: std.blackhole, inputs: [called]}
"""
SIGNATURE = "clean(text: string) -> string"


@pytest.mark.parametrize(
    ("operator", "config", "place", "message"),
    [
        ("project", "{expressions: {x: clean(v)}}", "8:25", f"{SIGNATURE} cannot be called with (int64)"),
        (
            "project",
            "{expressions: {k: k, x: 'clean(k, k)'}}",
            "8:31",
            f"{SIGNATURE} cannot be called with (string, st",
        ),
        ("project", "{expressions: {x: claen(k)}}", "8:25", "no function 'claen' (did you mean 'clean'?)"),
        ("project", "{expressions: {x: total(v)}}", "8:25", "function 'total' is an aggregate"),
        ("filter", "{predicate: clean(v) = 'a'}", "8:19", f"{SIGNATURE} cannot be called with (int64)"),
        ("filter", "{predicate: clean(k)}", "8:19", "the predicate is string, not boolean"),
        (
            "sql",
            "{query: SELECT clean(at) AS x FROM input}",
            "8:15",
            f"{SIGNATURE} cannot be called with (timestamp[us])",
        ),
        (
            "tumbling_window",
            "{size: 1s, aggregates: [{function: total, column: k}]}",
            "8:57",
            "total(value: int64) -> int64 cannot be called with (string)",
        ),
        (
            "tumbling_window",
            "{size: 1s, aggregates: [{function: count, filter: clean(v) = 'a'}]}",
            "8:57",
            f"{SIGNATURE} cannot be called with (int64)",
        ),
        ("tumbling_window", "{size: 1s, aggregates: [{function: totl, column: v}]}", "8:42", "did you mean 'total'"),
        ("async_udf", "{function: look_up, arguments: [v], as: x}", "8:39", "look_up(key: string) -> string cannot be"),
        ("async_udf", "{function: look_up, arguments: [k], as: v}", "8:47", "there is a column 'v' already"),
        ("async_udf", "{function: lookup, arguments: [k], as: x}", "8:18", "did you mean 'look_up'"),
        ("async_udf", "{function: look_up, arguments: [k]}", "8:7", "needs the field 'as'"),
        ("map_batches", "{function: keys_only}", "8:18", "the input has its event time in column 'at'"),
        ("map_batches", "{function: clean}", "8:18", "function 'clean' is not declared with @batch_udf"),
    ],
)
def test_a_mistake_is_shown_at_its_place(tmp_path, operator, config, place, message):
    registry = Registry()
    arroyo_register(registry)
    registry.add("test.nothing", NothingConstructor())
    for function in (clean, Total, look_up, keys_only):
        registry.add_udf(function)
    path = tmp_path / "mistakes.yaml"
    path.write_text(PIPELINE.replace("OPERATOR", operator).replace("CONFIG", config))
    with pytest.raises(InvalidPipelineError) as caught:
        run_in_process(path, plugins=PluginSet(registry, []))
    (error,) = caught.value.errors
    assert str(error).startswith(f"{path}:{place}: "), str(error)
    assert message in str(error)
