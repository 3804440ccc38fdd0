"""Pipeline files with one wrong config, and where the planner finds the mistake."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from arroyo_std.plugin import arroyo_register
from arroyo_testing import run_in_process
from google.protobuf import struct_pb2

from arroyo_core.api import ArroyoSchema, ConstructedOperator, OperatorConstructor, Registry, SourceOperator
from arroyo_core.api.updating import with_updating
from arroyo_core.errors import InvalidPipelineError, PipelineError
from arroyo_core.plugin import PluginSet

TIME = pa.timestamp("us")
ROWS = ArroyoSchema(
    pa.schema({"k": pa.string(), "v": pa.int64(), "tags": pa.list_(pa.string()), "at": TIME}), timestamp_column="at"
)
#: By the name of the source: `test.rows` has an event time, `test.plain` has none, `test.changes` is updating.
STREAMS = {
    "test.rows": ROWS,
    "test.plain": ArroyoSchema(ROWS.schema),
    "test.changes": with_updating(ArroyoSchema(ROWS.schema)),
}

PIPELINE = """\
name: mistakes
nodes:
  - {id: rows, operator: test.rows}
  - {id: plain, operator: test.plain}
  - {id: changes, operator: test.changes}
  - id: wrong
    operator: OPERATOR
    inputs: [INPUTS]
    config:
      CONFIG
  - {id: end, operator: std.blackhole, inputs: [wrong]}
  - {id: end_of_rest, operator: std.blackhole, inputs: [rows]}
  - {id: end_of_plain, operator: std.blackhole, inputs: [plain]}
  - {id: end_of_changes, operator: std.blackhole, inputs: [changes]}
"""


class Nothing(SourceOperator):
    def __init__(self, stream: ArroyoSchema) -> None:
        self._stream = stream

    def name(self):
        return "test.nothing"

    def output_schema(self, inputs):
        return self._stream

    def run(self, ctx, collector):
        raise AssertionError("nothing runs")


class NothingConstructor(OperatorConstructor[struct_pb2.Struct]):
    config_type = struct_pb2.Struct

    def __init__(self, stream: ArroyoSchema) -> None:
        self._stream = stream

    def with_config(self, config, registry):
        return ConstructedOperator.from_source(Nothing(self._stream))


def only_mistake(folder: Path, operator: str, config: str, inputs: Sequence[str] = ("rows",)) -> PipelineError:
    """The one mistake of a pipeline in which a node has this config, on line 10 from column 7 on."""
    registry = Registry()
    arroyo_register(registry)
    for name, stream in STREAMS.items():
        registry.add(name, NothingConstructor(stream))
    path = folder / "pipeline.yaml"
    text = PIPELINE.replace("OPERATOR", operator).replace("INPUTS", ", ".join(inputs)).replace("CONFIG", config)
    path.write_text(text)
    with pytest.raises(InvalidPipelineError) as raised:
        run_in_process(path, plugins=PluginSet(registry, []))
    (error,) = raised.value.errors
    return error
