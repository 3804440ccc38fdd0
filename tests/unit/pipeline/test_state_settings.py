"""The planner asks operators for the settings that their state depends on."""

import json

import pyarrow as pa
import pytest
from google.protobuf import struct_pb2

from arroyo_core.api import (
    ArrowOperator,
    ArroyoSchema,
    ConstructedOperator,
    OperatorConstructor,
    Origin,
    Registry,
    SourceFinishType,
    SourceOperator,
)
from arroyo_core.errors import InvalidPipelineError
from arroyo_core.pipeline import plan_text
from arroyo_core.pipeline.plan import Setting
from arroyo_core.plugin import PluginSet


class Source(SourceOperator):
    def __init__(self, config):
        self.config = config

    def name(self):
        return "t.source"

    def output_schema(self, inputs):
        return ArroyoSchema(pa.schema({"n": pa.int64()}))

    def state_settings(self, inputs):
        assert list(inputs) == []
        return {
            label: dict(sorted(value.items())) if hasattr(value, "items") else value
            for label, value in self.config.items()
        }

    def run(self, ctx, collector):
        return SourceFinishType.FINAL


class Sink(ArrowOperator):
    def __init__(self, config):
        self.config = config

    def name(self):
        return "t.sink"

    def output_schema(self, inputs):
        return inputs[0]

    def is_sink(self):
        return True

    def state_settings(self, inputs):
        if "answer" in self.config:
            return {"size": self.config["answer"]}
        if "fails" in self.config:
            raise RuntimeError("no idea")
        return {"columns": ", ".join(inputs[0].names)}

    def process_batch(self, batch, ctx, collector):
        return


class Constructor(OperatorConstructor):
    config_type = struct_pb2.Struct

    def __init__(self, kind):
        self.kind = kind

    def with_config(self, config, registry):
        made = self.kind(dict(config.items()))
        is_source = self.kind is Source
        return ConstructedOperator.from_source(made) if is_source else ConstructedOperator.from_operator(made)


@pytest.fixture
def plan():
    registry = Registry()
    with registry.registering(Origin("t-plugin", "1.0")):
        registry.add("t.source", Constructor(Source))
        registry.add("t.sink", Constructor(Sink))

    def plan(source=None, sink=None):
        nodes = [
            {"id": "in", "operator": "t.source", "config": source or {}},
            {"id": "out", "operator": "t.sink", "inputs": ["in"], "config": sink or {}},
        ]
        text = json.dumps({"name": "t", "nodes": nodes})
        return plan_text(text, plugins=PluginSet(registry, []), environment={"PLACE": "/vault/a"})

    return plan


def test_answers_are_part_of_the_plan_with_the_types_of_the_inputs(plan):
    found = plan({"seed": "7"})
    assert found.nodes["in"].settings == {"seed": Setting.of("7")}
    assert found.nodes["out"].settings == {"columns": Setting.of("n")}


def test_values_of_the_environment_are_in_the_plan_as_their_names_and_a_digest(plan):
    found = plan({"path": "${PLACE}/x", "seed": "7"}).nodes["in"].settings["path"]
    assert found.text == "${PLACE}/x"
    assert found.digest == Setting.of("/vault/a/x").digest
    assert "vault" not in repr(found)


def test_a_setting_may_have_parts(plan):
    found = plan({"sums": {"a": "sum(x)", "b": "${PLACE}"}}).nodes["in"].settings["sums"]
    assert found.text == "sum(x), ${PLACE}"
    assert found.digest == Setting.of("sum(x), /vault/a").digest
    assert found.parts == {"a": Setting.of("sum(x)"), "b": Setting.of("/vault/a", text="${PLACE}")}
    assert plan({"sums": {}}).nodes["in"].settings["sums"] == Setting("none", Setting.of("none").digest, parts={})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"answer": 7},
            "state_settings() returned 'size': 7.0, and must return texts by label, or parts by name; this is a fault "
            "of t-plugin",
        ),
        ({"fails": "x"}, "state_settings() failed with RuntimeError: no idea; this is a fault of t-plugin"),
    ],
)
def test_a_wrong_answer_is_a_fault_of_the_plugin(plan, config, message):
    with pytest.raises(InvalidPipelineError) as caught:
        plan(sink=config)
    assert message in str(caught.value)
