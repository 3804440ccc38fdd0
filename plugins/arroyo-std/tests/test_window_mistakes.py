"""Mistakes in the configs of windows, found in a pipeline file before anything runs."""

from __future__ import annotations

import pyarrow as pa
import pytest
from arroyo_std.plugin import arroyo_register
from google.protobuf import struct_pb2

from arroyo_core.api import ArroyoSchema, ConstructedOperator, OperatorConstructor, Registry, SourceOperator
from arroyo_core.errors import InvalidPipelineError
from arroyo_core.plugin import PluginSet
from arroyo_core.testing import run_in_process


class Nothing(SourceOperator):
    def name(self):
        return "test.nothing"

    def output_schema(self, inputs):
        columns = {"k": pa.string(), "v": pa.int64(), "tags": pa.list_(pa.string()), "at": pa.timestamp("us")}
        return ArroyoSchema(pa.schema(columns), "at")

    def run(self, ctx, collector):
        raise AssertionError("nothing runs")


class NothingConstructor(OperatorConstructor[struct_pb2.Struct]):
    config_type = struct_pb2.Struct

    def with_config(self, config, registry):
        return ConstructedOperator.from_source(Nothing())


PIPELINE = """\
name: mistakes
nodes:
  - {id: rows, operator: test.nothing}
  - id: window
    operator: std.OPERATOR
    inputs: [rows]
    config:
      CONFIG
  - {id: end, operator: std.blackhole, inputs: [window]}
"""


@pytest.mark.parametrize(
    ("operator", "config", "place", "message"),
    [
        ("tumbling_window", "{size: 0s}", "8:14", "more than zero"),
        ("tumbling_window", "{size: -5s}", "8:14", "-5s"),
        ("tumbling_window", "{size: 10}", "8:14", "no unit"),
        ("tumbling_window", "{keys: [k]}", "8:7", "needs the field 'size'"),
        ("tumbling_window", "{size: 1s, keys: [kk]}", "8:25", "no column 'kk'"),
        ("tumbling_window", "{size: 1s, keys: [tags]}", "8:25", "cannot be keyed"),
        ("tumbling_window", "{size: 1s, late: never}", "8:24", "must be one of drop, side_output"),
        ("tumbling_window", "{size: 1s, aggregates: [{function: summ, column: v}]}", "8:42", "did you mean 'sum'"),
        ("tumbling_window", "{size: 1s, aggregates: [{function: sum, column: k}]}", "8:55", "sum takes a number"),
        ("tumbling_window", "{size: 1s, aggregates: [{function: count}, {column: v}]}", "8:50", "needs the field"),
        ("tumbling_window", "{size: 1s, aggregates: [{function: count, filter: v + 1}]}", "8:57", "not boolean"),
        ("sliding_window", "{size: 10s, slide: 3s}", "8:26", "3s does not divide 10s"),
        ("session_window", "{gap: 0s}", "8:13", "more than zero"),
        ("updating_aggregate", "{keys: [k]}", "8:7", "needs the field 'aggregates'"),
    ],
)
def test_a_mistake_is_told_with_its_line_and_column(tmp_path, operator, config, place, message):
    registry = Registry()
    arroyo_register(registry)
    registry.add("test.nothing", NothingConstructor())
    path = tmp_path / "pipeline.yaml"
    path.write_text(PIPELINE.replace("OPERATOR", operator).replace("CONFIG", config))
    with pytest.raises(InvalidPipelineError) as raised:
        run_in_process(path, plugins=PluginSet(registry, []))
    (error,) = raised.value.errors
    assert f"{error.at.line}:{error.at.column}" == place
    assert message in str(error)
