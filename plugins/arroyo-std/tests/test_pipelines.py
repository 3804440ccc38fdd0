"""The examples of the README, planned from YAML and run in process."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest
import yaml
from arroyo_std.plugin import arroyo_register
from arroyo_testing import run_in_process
from google.protobuf import struct_pb2

from arroyo_core.api import (
    ArroyoSchema,
    ConstructedOperator,
    OperatorConstructor,
    Registry,
    SourceCollector,
    SourceContext,
    SourceFinishType,
    SourceOperator,
)
from arroyo_core.plugin import PluginSet
from arroyo_core.udf import UserFunction

README = Path(__file__).parents[1] / "README.md"


class Yaml12(yaml.SafeLoader):
    """As the planner reads YAML: `on` is a word, not a boolean."""

    yaml_implicit_resolvers: ClassVar = {
        first: [(tag, pattern) for tag, pattern in known if not tag.endswith(":bool")]
        for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


Yaml12.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(true|false)$"), list("tf"))

#: The function of the example of std.process.
FUNCTION = next(
    block for block in re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL) if "ProcessFunction" in block
)
#: The user functions of the examples.
USER_FUNCTIONS = next(
    block
    for block in re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    if "from arroyo_core.udf" in block
)
EXAMPLES = [yaml.load(block, Yaml12)[0] for block in re.findall(r"```yaml\n(.*?)```", README.read_text(), re.DOTALL)]
SINKS = {"std.stdout", "std.blackhole"}

BIDS = pa.RecordBatch.from_pydict(
    {
        "auction": [1, 2, 1, 3],
        "price": [50, 150, 250, None],
        "channel": ["Apple", "Google", "Baidu", None],
        "date_time": pa.array([1, 2, 3, 4], pa.timestamp("s")).cast(pa.timestamp("us", tz="UTC")),
        "tags": [["a", "b"], [], None, ["c"]],
        "seller": [{"id": 7, "city": "Rome"}, None, {"id": 8, "city": "Oslo"}, {"id": 9, "city": None}],
    }
)

#: What the examples leave of the four rows above.
ROWS_LEFT = {
    "big": 1,
    "all_bids": 8,
    "tagged": 5,
    "nowhere": 0,
    "out": 0,
    "busy": 3,
    "longest": 3,
    "per_item": 3,
    "hot": 16,
    "visits": 3,
    "totals": 3,
    "joined": 6,
    "won": 6,
    "between": 6,
    "top": 16,
    "ranked": 16,
    "dear": 2,
    "current": 3,
}


class Bids(SourceOperator):
    """Four rows from subtask 0."""

    def name(self) -> str:
        return "test.bids"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        return ArroyoSchema(BIDS.schema, "date_time")

    def run(self, ctx: SourceContext, collector: SourceCollector) -> SourceFinishType:
        if ctx.task_info.task_index == 0:
            collector.collect(BIDS)
        return SourceFinishType.FINAL


class BidsConstructor(OperatorConstructor[struct_pb2.Struct]):
    config_type = struct_pb2.Struct

    def with_config(self, config: struct_pb2.Struct, registry: Registry) -> ConstructedOperator:
        return ConstructedOperator.from_source(Bids())


@pytest.fixture(scope="module")
def plugins() -> PluginSet:
    registry = Registry()
    arroyo_register(registry)
    registry.add("test.bids", BidsConstructor())
    module: dict[str, Any] = {}
    exec(compile(USER_FUNCTIONS, str(README), "exec", dont_inherit=True), module)
    for found in module.values():
        if isinstance(found, UserFunction):
            registry.add_udf(found)
    return PluginSet(registry, [])


@pytest.fixture
def run_nodes(plugins, tmp_path, monkeypatch):
    # The table of the example of std.lookup_join.
    monkeypatch.chdir(tmp_path)
    (tmp_path / "channels.csv").write_text("channel,country\nApple,US\nBaidu,CN\n")
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme" / "functions.py").write_text(FUNCTION)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("acme", "acme.functions"):
        monkeypatch.delitem(sys.modules, name, raising=False)

    def run_nodes(nodes, parallelism):
        sources = {name for node in nodes for name in node["inputs"]} - {node["id"] for node in nodes}
        pipeline = {
            "name": "example",
            "nodes": [*({"id": name, "operator": "test.bids"} for name in sorted(sources)), *nodes],
        }
        path = tmp_path / "pipeline.yaml"
        path.write_text(json.dumps(pipeline))
        return run_in_process(path, plugins=plugins, parallelism=parallelism)

    return run_nodes


def needed_by(node):
    """The examples that an example reads, before it."""
    read = [example for example in EXAMPLES if example["id"] in node["inputs"]]
    return [each for example in read for each in (*needed_by(example), example)]


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize("node", EXAMPLES, ids=lambda node: node["id"])
def test_an_example_of_the_readme_runs(run_nodes, node, parallelism):
    sink = [] if node["operator"] in SINKS else [{"id": "end", "operator": "std.blackhole", "inputs": [node["id"]]}]
    result = run_nodes([*needed_by(node), node, *sink], parallelism)
    assert result.is_finished
    assert result.operators[node["id"]].rows_sent == ROWS_LEFT.get(node["id"], BIDS.num_rows)


def test_the_readme_has_an_example_of_every_operator(plugins):
    assert {node["operator"] for node in EXAMPLES} == set(plugins.registry.constructors) - {"test.bids"}


def test_a_chain_of_operators_prints_what_sql_says(run_nodes, capsys):
    result = run_nodes(
        [
            {
                "id": "flat",
                "operator": "std.unnest",
                "inputs": ["bids"],
                "config": {"column": "tags", "as": "tag", "outer": True},
            },
            {
                "id": "some",
                "operator": "std.filter",
                "inputs": ["flat"],
                "config": {"predicate": "tag IS DISTINCT FROM 'b'"},
            },
            {
                "id": "named",
                "operator": "std.project",
                "inputs": ["some"],
                "config": {"expressions": {"city": "upper(seller.city)", "n": "auction * 10", "tag": "tag"}},
            },
            {"id": "print", "operator": "std.stdout", "inputs": ["named"]},
        ],
        parallelism=1,
    )
    assert result.is_finished
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        {"city": "ROME", "n": 10, "tag": "a"},
        {"city": None, "n": 20, "tag": None},
        {"city": "OSLO", "n": 10, "tag": None},
        {"city": None, "n": 30, "tag": "c"},
    ]
