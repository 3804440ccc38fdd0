import json

import pyarrow as pa
import pytest
from google.protobuf import struct_pb2

from arroyo_core.api import (
    ArrowOperator,
    ArroyoSchema,
    ConstructedOperator,
    Guarantee,
    OperatorConstructor,
    Origin,
    Registry,
    SourceFinishType,
    SourceOperator,
)
from arroyo_core.pipeline import plan_file
from arroyo_core.pipeline.views import render_json, render_text
from arroyo_core.plugin import PluginSet
from arroyo_core.state import global_table_config

EXACT, LEAST, MOST, NONE = (
    Guarantee.EXACTLY_ONCE,
    Guarantee.AT_LEAST_ONCE,
    Guarantee.AT_MOST_ONCE,
    Guarantee.NONE,
)


class Source(SourceOperator):
    def __init__(self, settings):
        self.settings = settings

    def name(self):
        return "g.source"

    def output_schema(self, inputs):
        return ArroyoSchema(pa.schema({"n": pa.int64()}))

    def tables(self):
        return global_table_config("position", "") if self.settings.get("has_position") else {}

    def run(self, ctx, collector):
        return SourceFinishType.FINAL


class Pass(ArrowOperator):
    def __init__(self, settings):
        self.settings = settings

    def name(self):
        return "g.pass"

    def output_schema(self, inputs):
        return inputs[0]

    def process_batch(self, batch, ctx, collector):
        collector.collect(batch)


class Sink(Pass):
    def is_sink(self):
        return True

    def is_committing(self):
        return bool(self.settings.get("is_committing"))


class Dropping(Pass):
    """An operator of the middle that says so of itself."""

    def guarantee(self):
        if self.settings.get("fails"):
            raise RuntimeError(f"no idea, {self.settings['secret']}")
        return Guarantee.AT_MOST_ONCE

    def guarantee_reason(self):
        return f"it samples with {self.settings['secret']}"


class Constructor(OperatorConstructor):
    config_type = struct_pb2.Struct

    def __init__(self, kind):
        self.kind = kind

    def with_config(self, config, registry):
        operator = self.kind(dict(config.items()))
        return (
            ConstructedOperator.from_source(operator)
            if self.kind is Source
            else ConstructedOperator.from_operator(operator)
        )


@pytest.fixture
def plan(tmp_path):
    registry = Registry()
    with registry.registering(Origin("g-plugin", "1.0")):
        for name, kind in {"g.source": Source, "g.pass": Pass, "g.sink": Sink, "g.dropping": Dropping}.items():
            registry.add(name, Constructor(kind))

    def plan(*, source, sink, middle=("g.pass", {}), **settings):
        nodes = [
            {"id": "in", "operator": "g.source", "config": source},
            {"id": "mid", "operator": middle[0], "inputs": ["in"], "config": middle[1]},
            {"id": "out", "operator": "g.sink", "inputs": ["mid"], "config": sink},
        ]
        path = tmp_path / "p.yaml"
        path.write_text(json.dumps({"name": "g", "nodes": nodes, **settings}))
        return plan_file(path, plugins=PluginSet(registry, []), environment={"SECRET": "hunter2"})

    return plan


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([], EXACT),
        ([EXACT, EXACT], EXACT),
        ([EXACT, LEAST], LEAST),
        ([MOST, EXACT], MOST),
        ([LEAST, MOST], NONE),
        ([EXACT, NONE], NONE),
    ],
)
def test_together_guarantees_are_what_none_of_them_breaks(parts, expected):
    assert Guarantee.combine(parts) is expected


@pytest.mark.parametrize(
    ("source", "sink", "expected"),
    [
        ({"has_position": True}, {"is_committing": True}, EXACT),
        ({"has_position": True}, {}, LEAST),
        ({}, {"is_committing": True}, NONE),
    ],
)
def test_a_source_needs_a_position_and_a_sink_commits_for_exactly_once(plan, source, sink, expected):
    found = json.loads(render_json(plan(source=source, sink=sink, checkpoint={"url": "/x"})))
    assert found["guarantee"] == {"end_to_end": expected.value, "survives_restart": True}


def test_a_plan_without_a_checkpoint_url_says_that_a_restart_starts_over(plan):
    pipeline = plan(source={"has_position": True}, sink={"is_committing": True})
    expected = "exactly once, end to end, within one run: without a checkpoint url a restart begins again\n"
    assert f"Guarantee   {expected}" in render_text(pipeline)
    assert json.loads(render_json(pipeline))["guarantee"]["survives_restart"] is False


def test_a_weak_operator_in_the_middle_is_named_without_secrets(plan):
    pipeline = plan(
        source={"has_position": True},
        sink={"is_committing": True},
        middle=("g.dropping", {"secret": "${SECRET}"}),
        checkpoint={"url": "/x"},
    )
    shown = render_text(pipeline)
    assert "Guarantee   at most once, end to end\n" in shown
    assert "            because of mid, at most once: it samples with ${SECRET}\n" in shown
    assert "      guarantee  at most once: it samples with ${SECRET}\n" in shown
    assert "hunter2" not in shown + render_json(pipeline)


def test_an_operator_that_fails_to_answer_guarantees_nothing(plan):
    middle = ("g.dropping", {"fails": True, "secret": "${SECRET}"})
    pipeline = plan(source={"has_position": True}, sink={"is_committing": True}, middle=middle)
    assert pipeline.guarantees["mid"].level is NONE
    assert "because of mid, no guarantee: the operator fails to say what it guarantees" in render_text(pipeline)
