"""Bundles made on the spot, and operators of a plugin `t` that call user functions by their names."""

import textwrap

import pyarrow as pa
import pytest
from arroyo_devtools.bundles.building import build_bundle
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
from arroyo_core.errors import ConfigError
from arroyo_core.local_folders import UDF_CACHE
from arroyo_core.plugin import PluginSet
from arroyo_core.state import global_table_config
from arroyo_core.udf.artifact_cache import ArtifactCache
from arroyo_core.udf.signing import TRUST_VARIABLE

GREETING = '''
from arroyo_core.udf import udf

__version__ = "1.0"


@udf
def greet(name: str) -> str:
    """Greets.

    >>> greet("you")
    'hello you'
    """
    return f"hello {name}"
'''


@pytest.fixture(autouse=True)
def cache_folder(tmp_path, monkeypatch):
    folder = tmp_path / "udf-cache"
    monkeypatch.setenv(UDF_CACHE.variable, str(folder))
    monkeypatch.delenv(TRUST_VARIABLE, raising=False)
    return folder


@pytest.fixture
def cache(cache_folder):
    return ArtifactCache(cache_folder)


@pytest.fixture
def make_bundle(tmp_path):
    """Build a bundle of one module; gives the path of the zip."""

    def make(source=GREETING, *, name="greeting"):
        folder = tmp_path / "sources"
        folder.mkdir(exist_ok=True)
        path = folder / f"{name}.py"
        path.write_text(textwrap.dedent(source))
        built = build_bundle(path)
        target = tmp_path / "bundles" / built.file_name
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(built.data)
        return target

    return make


@pytest.fixture
def make_project(tmp_path):
    """Write a project folder; `files` are below `src`."""

    def make(files, *, name="acme-geo", version="1.2.0", **project):
        folder = tmp_path / f"project-{version}"
        for path, text in files.items():
            target = folder / "src" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(textwrap.dedent(text))
        settings = {"name": name, "version": version, **project}
        lines = [f"{key} = {value!r}" for key, value in settings.items()]
        (folder / "pyproject.toml").write_text("\n".join(["[project]", *lines]) + "\n")
        return folder

    return make


SEEN = []
NAMES = ArroyoSchema(pa.schema([pa.field("name", pa.string())]))


class _Source(SourceOperator):
    """Three rows an epoch, until `rows` are out; where it is stands in its state."""

    def __init__(self, rows):
        self._rows = rows

    def name(self):
        return "t.source"

    def output_schema(self, inputs):
        return NAMES

    def tables(self):
        return global_table_config("position", "rows that were sent")

    def run(self, ctx, collector):
        view = ctx.table_manager.get_global_keyed_state("position")
        start = view.get("next") or 0
        end = min(start + 3, self._rows)
        collector.collect(pa.record_batch({"name": [f"n{number}" for number in range(start, end)]}))
        view.insert("next", end)
        return SourceFinishType.FINAL if end >= self._rows else SourceFinishType.CHECKPOINTED


class _Call(ArrowOperator):
    def __init__(self, function):
        self._function = function

    def name(self):
        return "t.call"

    def output_schema(self, inputs):
        return inputs[0]

    def process_batch(self, batch, ctx, collector):
        collector.collect(pa.record_batch({"name": self._function.evaluate([batch.column(0)])}))


class _Sink(ArrowOperator):
    def name(self):
        return "t.sink"

    def is_sink(self):
        return True

    def output_schema(self, inputs):
        return ArroyoSchema(pa.schema([]))

    def process_batch(self, batch, ctx, collector):
        SEEN.extend(batch.column(0).to_pylist())


class _Constructor(OperatorConstructor):
    config_type = struct_pb2.Struct

    def __init__(self, make):
        self._make = make

    def with_config(self, config, registry):
        return self._make(config, registry)


def _call(config, registry):
    function = registry.udfs.get(config["function"])
    if function is None:
        raise ConfigError(
            f"there is no function {config['function']!r}", field="function", allowed=tuple(registry.udfs)
        )
    return ConstructedOperator.from_operator(_Call(function))


@pytest.fixture
def plugins():
    registry = Registry()
    with registry.registering(Origin("t-operators", "1")):
        registry.add(
            "t.source",
            _Constructor(lambda config, _: ConstructedOperator.from_source(_Source(int(dict(config).get("rows", 3))))),
        )
        registry.add("t.call", _Constructor(_call))
        registry.add("t.sink", _Constructor(lambda *_: ConstructedOperator.from_operator(_Sink())))
    return PluginSet(registry, ())


@pytest.fixture
def seen():
    SEEN.clear()
    return SEEN


@pytest.fixture
def pipeline(tmp_path):
    """Write a pipeline that calls functions one after the other."""

    def write(udfs, *functions, rows=3, checkpoint=""):
        lines = ["name: p", *([f"checkpoint: {checkpoint}"] if checkpoint else []), "udfs:"]
        lines += [f"  - {udf}" for udf in udfs]
        lines += ["nodes:", f"  - {{id: source, operator: t.source, config: {{rows: {rows}}}}}"]
        last = "source"
        for number, function in enumerate(functions):
            lines.append(f"  - id: call{number}")
            lines.append("    operator: t.call")
            lines.append(f"    inputs: [{last}]")
            lines.append(f"    config: {{function: {function}}}")
            last = f"call{number}"
        lines.append(f"  - {{id: sink, operator: t.sink, inputs: [{last}]}}")
        path = tmp_path / "pipeline.yaml"
        path.write_text("\n".join(lines) + "\n")
        return path

    return write
