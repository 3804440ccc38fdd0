from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest
from arroyo_filesystem.filesystem_pb2 import Column, CsvOptions, SinkConfig, SourceConfig
from arroyo_filesystem.plugin import SinkConstructor, SourceConstructor
from arroyo_testing import OperatorHarness, SourceHarness
from google.protobuf import json_format, struct_pb2
from hypothesis import settings

from arroyo_core.api import ArroyoSchema, ConstructedOperator, Registry, with_defaults

# Two cores, shared: the time of an example says nothing.
settings.register_profile("shared", deadline=None, max_examples=40)
settings.load_profile("shared")

CommitData = Mapping[str, Mapping[int, bytes]]


def format_value(written: Any) -> struct_pb2.Value | None:
    """The field `format` of a config, as YAML has it: a text, or a mapping."""
    return None if written is None else json_format.ParseDict(written, struct_pb2.Value())


class Files:
    """What tests do with sources and sinks."""

    def source_config(self, path: object, **config: Any) -> SourceConfig:
        schema = [Column(name=name, type=kind) for name, kind in config.pop("schema", {}).items()]
        csv = config.pop("csv", None)
        chosen = format_value(config.pop("format", None))
        options = CsvOptions(**csv) if csv else None
        return with_defaults(SourceConfig(path=str(path), schema=schema, csv=options, format=chosen, **config))

    def make_source(self, path: object, **config: Any) -> ConstructedOperator:
        return SourceConstructor().with_config(self.source_config(path, **config), Registry())

    def source(self, path: object, **config: Any) -> SourceHarness:
        # One resolved config for all instances, as in a plan: files are listed once.
        message = SourceConstructor().resolve(self.source_config(path, **config))
        return SourceHarness(lambda: SourceConstructor().with_config(message, Registry()))

    def read(self, path: object, **config: Any) -> pa.Table:
        harness = self.source(path, **config)
        try:
            return harness.run_all()
        finally:
            harness.close()

    def make_sink(self, path: object, **config: Any) -> ConstructedOperator:
        chosen = format_value(config.pop("format", None))
        written = with_defaults(SinkConfig(path=str(path), format=chosen, **config))
        return SinkConstructor().with_config(written, Registry())

    def sink(self, path: object, schema: pa.Schema, *, task_index: int = 0, parallelism: int = 1, **config: Any) -> Any:
        return OperatorHarness(
            lambda: self.make_sink(path, **config),
            inputs=[ArroyoSchema(schema)],
            task_index=task_index,
            parallelism=parallelism,
        )

    def write(self, path: object, table: pa.Table, **config: Any) -> CommitData:
        """One epoch of a sink, committed."""
        with self.sink(path, table.schema, **config) as harness:
            for batch in table.to_batches():
                harness.process(batch)
            harness.end_of_data()
            staged: CommitData = harness.checkpoint()
            harness.commit(staged)
            return staged


@pytest.fixture(scope="session")
def files() -> Files:
    return Files()


@pytest.fixture(params=["local", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty folder on each kind of storage."""
    if request.param == "local":
        yield str(tmp_path / "data")
        return
    name = f"/{uuid.uuid4().hex}"
    yield f"memory:/{name}"
    memory = fsspec.filesystem("memory")
    if memory.exists(name):
        memory.rm(name, recursive=True)


@pytest.fixture(scope="session")
def names() -> Callable[[str], list[str]]:
    """The names of all files below a folder but manifests, relative to it and sorted."""

    def list_names(folder: str) -> list[str]:
        fs, root = fsspec.core.url_to_fs(folder)
        found = [path.removeprefix(root).lstrip("/") for path in fs.find(root)] if fs.exists(root) else []
        return sorted(name for name in found if not name.startswith("_committed/"))

    return list_names
