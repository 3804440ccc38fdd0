"""The schema of the installed plugins, files as an editor reads them, and a place where examples can be planned."""

import re
import sys
from pathlib import Path
from typing import ClassVar

import jsonschema
import pyarrow as pa
import pytest
import yaml
from arroyo_devtools.schema import describe_operators, pipeline_schema

from arroyo_core.pipeline.planner import plan_text
from arroyo_core.plugin import PluginSet, installed_plugins
from arroyo_core.udf import async_udf, batch_udf

ROOT = Path(__file__).resolve().parents[4]

PROCESS_FUNCTION = """
from arroyo_std import ProcessFunction


class CountUntilQuiet(ProcessFunction):
    def __init__(self, wait_us):
        self.wait_us = wait_us

    def state_schema(self, stream):
        import pyarrow as pa

        return pa.schema({"rows": pa.int64()})

    def output_schema(self, stream):
        return stream

    def on_batch(self, batch, state, timers, ctx, collector):
        collector.collect(batch)
"""


class EditorLoader(yaml.SafeLoader):
    """YAML 1.2 with its core schema, as editors read it; no key twice."""

    yaml_implicit_resolvers: ClassVar = {}

    def construct_mapping(self, node, deep=False):
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if len(set(keys)) != len(keys):
            raise yaml.constructor.ConstructorError(None, None, "a key is written twice", node.start_mark)
        return super().construct_mapping(node, deep=deep)


def _core_int(loader, node):
    text = loader.construct_scalar(node)
    return int(text, 0) if text.startswith(("0x", "0o")) else int(text)


for tag, pattern, first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    ("float", r"[-+]?((\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|\.inf)|\.nan", list("-+.0123456789")),
):
    EditorLoader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"(?:{pattern})$"), first)
EditorLoader.add_constructor("tag:yaml.org,2002:int", _core_int)


@pytest.fixture(scope="session")
def editor_loader():
    return EditorLoader


@pytest.fixture(scope="session")
def plugins():
    return installed_plugins()


@pytest.fixture(scope="session")
def operators(plugins):
    return describe_operators(plugins)


@pytest.fixture(scope="session")
def schema(plugins):
    return pipeline_schema(plugins)


@pytest.fixture(scope="session")
def validator(schema):
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


@pytest.fixture
def problems(validator):
    """What an editor would mark in a text; raises `yaml.YAMLError` where it is not YAML."""

    def problems(text):
        document = yaml.load(text, EditorLoader)
        return [f"{'.'.join(map(str, error.path))}: {error.message}" for error in validator.iter_errors(document)]

    return problems


@batch_udf(schema=lambda schema: schema.append(pa.field("share", pa.float64())))
def shares(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.append_column("share", pa.nulls(batch.num_rows, pa.float64()))


@async_udf
async def country(channel: str) -> str:
    return channel


#: The streams that examples read, and what they refer to.
STREAMS = {"bids": "bid", "auctions": "auction", "people": "person"}
#: Planning these asks a server, or a table that is there, for columns: the tests of their own distributions plan them.
ASKING = frozenset(
    {"delta.source", "iceberg.source", "mysql.cdc", "mysql.sink", "mysql.source", "postgres.cdc", "postgres.sink"}
    | {"postgres.source"}
)
CONNECTORS = ("delta", "filesystem", "iceberg", "kafka", "mysql", "postgres", "spark")


@pytest.fixture(name="complete", scope="session")
def complete_fixture():
    return complete


@pytest.fixture
def functions():
    """The user functions that examples call."""
    return [shares, country]


def complete(nodes: str) -> str:
    """A pipeline around the nodes of an example: its sources before, and a sink for whatever nobody reads."""
    written = yaml.load(nodes, EditorLoader)
    ids = [node["id"] for node in written]
    read = [name for node in written for name in node.get("inputs", ())]
    lines = ["name: example", "nodes:", *(f"  {line}" for line in nodes.splitlines())]
    lines += [
        f"  - {{id: {name}, operator: nexmark.source, config: {{table: {STREAMS[name]}}}}}"
        for name in dict.fromkeys(name for name in read if name.partition(".")[0] not in ids)
    ]
    sinks = {"std.stdout", "std.blackhole"} | {f"{kind}.sink" for kind in CONNECTORS}
    lines += [
        f"  - {{id: {node['id']}_end, operator: std.blackhole, inputs: [{node['id']}]}}"
        for node in written
        if node["id"] not in read and node["operator"] not in sinks
    ]
    return "\n".join(lines) + "\n"


@pytest.fixture
def plan_example(plugins, functions, tmp_path, monkeypatch):
    """Plans nodes as an example has them; the files and functions that examples use are there."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "channels.csv").write_text("channel,country\nApple,US\n")
    (tmp_path / "orders").mkdir()
    (tmp_path / "orders" / "a.csv").write_text("id,placed_at,country,total\n1,2026-01-01T00:00:00Z,NL,1.50\n")
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme" / "functions.py").write_text(PROCESS_FUNCTION)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("acme", "acme.functions"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with_functions = PluginSet(plugins.registry.with_udfs(functions), plugins.reports)

    def plan(nodes):
        return plan_text(complete(nodes), plugins=with_functions, environment={})

    return plan
