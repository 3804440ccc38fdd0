"""Sources of a table that grows, as tests use them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from arroyo_postgres.growing.settings import check_source
from arroyo_postgres.growing.source import PostgresSource
from arroyo_postgres.plugin import SourceConstructor
from arroyo_postgres.source_pb2 import SourceConfig
from arroyo_testing import SourceHarness
from google.protobuf import json_format

from arroyo_core.api import Registry, with_defaults
from tests.postgres_server import PostgresServer


def add(database: PostgresServer, *words: str, at: str = "2024-01-01") -> None:
    for word in words:
        database.execute(f"insert into events (word, at) values ('{word}', '{at}Z')")


def read_config(server: PostgresServer, **fields: Any) -> SourceConfig:
    written = {"connection": server.config, "table": "events", "growing_column": "id", **fields}
    return with_defaults(json_format.ParseDict(written, SourceConfig()))


def make(server: PostgresServer, **fields: Any) -> Any:
    return SourceConstructor().with_config(read_config(server, **fields), Registry())


def harness(server: PostgresServer, *, lives_on: bool = False, **fields: Any) -> SourceHarness:
    """Planned once, as a pipeline is; the kit asks for the columns at each epoch."""
    planned = make(server, **fields).source.output_schema([])

    class Planned(PostgresSource):
        def output_schema(self, inputs: Any) -> Any:
            return planned

    return SourceHarness(lambda: Planned(check_source(read_config(server, **fields))), lives_on=lives_on)


def words(table: pa.Table) -> list[str]:
    return table.column("word").to_pylist()
