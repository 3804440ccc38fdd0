"""Sources read only the columns that somebody needs."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arroyo_testing import run_in_process
from google.protobuf.struct_pb2 import Struct

from arroyo_core.api import ArrowOperator, ConstructedOperator, OperatorConstructor
from arroyo_core.errors import InvalidPipelineError
from arroyo_core.pipeline import plan_pipeline
from arroyo_core.plugin import discover, installed_plugins

START = datetime(2026, 1, 1, tzinfo=UTC)
ROWS = 100
EVENTS = pa.table(
    {
        "key": [number % 7 for number in range(ROWS)],
        "value": list(range(ROWS)),
        "weight": [number / 3 for number in range(ROWS)],
        "text": [f"row {number}" for number in range(ROWS)],
        "at": pa.array([START + timedelta(seconds=number) for number in range(ROWS)], pa.timestamp("us", "UTC")),
    }
)
ALL = EVENTS.schema.names

FILTER = ("std.filter", {"predicate": "weight > 3 AND text <> 'row 50'"})
PROJECT = ("std.project", {"expressions": {"double": "value * 2", "key": "key"}})
KEEP = ("std.project", {"keep": ["key", "at"]})
DROP = ("std.project", {"drop": ["text"]})
QUERY = ("std.sql", {"query": "SELECT key, at FROM (SELECT key, at, value + 1 AS next FROM input) WHERE next > 10"})
COUNT = {"function": "count", "as": "rows"}
HEAVY = {"function": "sum", "column": "value", "filter": "weight > 3", "as": "heavy"}
WINDOW = ("std.tumbling_window", {"size": "10s", "keys": ["key"], "aggregates": [COUNT, HEAVY]})
SESSION = ("std.session_window", {"gap": "3s", "aggregates": [COUNT]})
LATE = ("std.tumbling_window", {**WINDOW[1], "late": "side_output"})
TOTALS = ("std.updating_aggregate", {"keys": ["key"], "aggregates": [HEAVY]})
FIRST = ("std.deduplicate", {"keys": ["key"], "ttl": "0s"})
WATERMARK = ("std.watermark", {"max_lateness": "1s"})


@pytest.fixture
def pipeline(tmp_path):
    """A pipeline file: a source of `EVENTS`, a chain of operators, and a sink that takes everything."""
    pq.write_table(EVENTS, tmp_path / "events.parquet", row_group_size=30)

    def pipeline(*steps, sink="std.blackhole", **source):
        config = {"path": str(tmp_path / "events.parquet"), "event_time_field": "at", **source}
        nodes = [{"id": "events", "operator": "filesystem.source", "config": config}]
        for number, (operator, settings) in enumerate(steps):
            before = nodes[-1]["id"]
            nodes.append({"id": f"step{number}", "operator": operator, "inputs": [before], "config": settings})
        end = {"id": "end", "operator": sink, "inputs": [nodes[-1]["id"]]}
        if sink == "filesystem.sink":
            end["config"] = {"path": str(tmp_path / "out"), "updating": "keep_meta"}
        path = tmp_path / "pipeline.yaml"
        path.write_text(json.dumps({"name": "pruned", "parallelism": 2, "nodes": [*nodes, end]}))
        return path

    return pipeline


def columns_read(path, plugins=None):
    plan = plan_pipeline(path, plugins=plugins or installed_plugins(), environment={})
    return plan.nodes["events"].output_schema.names


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([], ALL),
        ([FILTER], ALL),
        ([FILTER, PROJECT], ALL),
        ([PROJECT], ["key", "value", "at"]),
        ([KEEP], ["key", "at"]),
        ([DROP], ALL),
        ([QUERY], ["key", "value", "at"]),
        ([WINDOW], ["key", "value", "weight", "at"]),
        ([WATERMARK, SESSION], ["at"]),
        ([FILTER, SESSION], ["weight", "text", "at"]),
        ([TOTALS], ["key", "value", "weight", "at"]),
        ([("std.key_by", {"keys": ["text"]}), SESSION], ["text", "at"]),
        ([FIRST, KEEP], ALL),
        ([LATE], ALL),
    ],
    ids=lambda value: "+".join(step[0] for step in value if isinstance(step, tuple)) or None,
)
def test_a_source_reads_what_is_needed_behind_it(pipeline, steps, expected):
    assert columns_read(pipeline(*steps)) == expected


@pytest.mark.parametrize(
    "steps", [[PROJECT], [KEEP], [QUERY], [WINDOW], [WATERMARK, SESSION], [FILTER, SESSION], [TOTALS]], ids=str
)
def test_the_result_is_the_same_as_of_all_columns(pipeline, tmp_path, monkeypatch, steps):
    def run():
        assert run_in_process(pipeline(*steps, sink="filesystem.sink")).is_finished
        files = sorted((tmp_path / "out").glob("part-*.parquet"))
        rows = pa.concat_tables(pq.read_table(path) for path in files).to_pylist()
        for path in files:
            path.unlink()
        return sorted(map(repr, rows))

    pruned = run()
    monkeypatch.setattr("arroyo_filesystem.source.FilesystemSource.is_selective", lambda self: False)
    assert columns_read(pipeline(*steps)) == ALL
    assert pruned == run()


def test_several_readers_get_all_that_any_of_them_needs(pipeline, tmp_path):
    document = json.loads(pipeline(KEEP).read_text())
    document["nodes"] += [
        {"id": "more", "operator": "std.project", "inputs": ["events"], "config": {"keep": ["weight"]}},
        {"id": "other_end", "operator": "std.blackhole", "inputs": ["more"]},
    ]
    path = tmp_path / "two.yaml"
    path.write_text(json.dumps(document))
    assert columns_read(path) == ["key", "weight", "at"]


def test_rows_are_counted_where_nobody_needs_a_column(pipeline):
    path = pipeline(("std.updating_aggregate", {"aggregates": [COUNT]}), event_time_field="")
    assert columns_read(path) == ["key"]


def test_text_is_read_whole(pipeline, tmp_path):
    (tmp_path / "events.csv").write_text("key,value,at\n1,2,2026-01-01T00:00:00Z\n")
    assert columns_read(pipeline(KEEP, path=str(tmp_path / "events.csv"))) == ["key", "value", "at"]


class Unhelpful(ArrowOperator):
    """An operator whose author has not thought of columns, or has, and got it wrong."""

    def __init__(self, answer=None):
        self.answer = answer

    def name(self):
        return "acme.unhelpful"

    def output_schema(self, inputs):
        return inputs[0]

    def process_batch(self, batch, ctx, collector):
        collector.collect(batch)

    def needed_columns(self, inputs, needed):
        return super().needed_columns(inputs, needed) if self.answer is None else self.answer


class UnhelpfulConstructor(OperatorConstructor):
    def __init__(self, config_type, answer):
        self.config_type = config_type
        self.answer = answer

    def with_config(self, config, registry):
        return ConstructedOperator.from_operator(Unhelpful(self.answer))


def with_unhelpful(answer):
    plugins = discover()
    plugins.registry.add("acme.unhelpful", UnhelpfulConstructor(Struct, answer))
    return plugins


def test_an_operator_that_does_not_say_gets_everything(pipeline):
    path = pipeline(("acme.unhelpful", {}), KEEP)
    assert columns_read(path, with_unhelpful(None)) == ALL


def test_an_operator_that_answers_for_the_wrong_number_of_inputs_is_named(pipeline):
    path = pipeline(("acme.unhelpful", {}), KEEP)
    with pytest.raises(InvalidPipelineError, match=r"acme\.unhelpful.*needed_columns\(\) gives 2 answers for 1 inputs"):
        columns_read(path, with_unhelpful([set(), set()]))


def test_generated_events_have_only_the_columns_that_are_needed(pipeline, tmp_path):
    document = json.loads(pipeline(("std.project", {"keep": ["price"]})).read_text())
    document["nodes"][0] = {"id": "events", "operator": "nexmark.source", "config": {"events": 1000}}
    path = tmp_path / "bids.yaml"
    path.write_text(json.dumps(document))
    assert columns_read(path) == ["price", "date_time"]
    assert run_in_process(path).source_rows == 920
