"""Sources under test, and what is put into the topics that they read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from arroyo_kafka.kafka_pb2 import Column, MetadataColumn, SourceConfig
from arroyo_kafka.plugin import SourceConstructor
from arroyo_testing import FakeClock, SourceHarness
from google.protobuf import json_format

from arroyo_core.api import ConstructedOperator, Registry, with_defaults

#: The columns of the messages that `message` makes.
SCHEMA = {"id": "int64", "at": "timestamp"}


def message(number: int, second: float = 0.0) -> bytes:
    """A message of a row with this id, at so many seconds after 1970."""
    return json.dumps({"id": number, "at": datetime.fromtimestamp(second, UTC).isoformat()}).encode()


def messages(numbers: Iterable[int]) -> list[bytes]:
    """One for each number, each a second later."""
    return [message(number, number) for number in numbers]


def source_config(bootstrap_servers: str, **config: Any) -> SourceConfig:
    """A config as the planner would make it, with the defaults of its fields."""
    config = {"format": "json", "schema": SCHEMA, **config}
    schema = [Column(name=name, type=kind) for name, kind in config.pop("schema").items()]
    metadata = [MetadataColumn(name=name, part=part) for name, part in config.pop("metadata", {}).items()]
    values = {name: config.pop(name) for name in ("format", "start", "until") if name in config}
    written = SourceConfig(bootstrap_servers=bootstrap_servers, schema=schema, metadata=metadata, **config)
    json_format.ParseDict(values, written)
    return with_defaults(written)


def make_source(bootstrap_servers: str, **config: Any) -> ConstructedOperator:
    """A source of a config that is resolved as a plan has it."""
    resolved = SourceConstructor().resolve(source_config(bootstrap_servers, **config))
    return SourceConstructor().with_config(resolved, Registry())


class Sources:
    """Makes harnesses of sources that read one broker, and closes them."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._harnesses: list[SourceHarness] = []

    def __call__(self, clock: FakeClock | None = None, **config: Any) -> SourceHarness:
        harness = SourceHarness(lambda: make_source(self._bootstrap_servers, **config), clock=clock)
        self._harnesses.append(harness)
        return harness

    def close(self) -> None:
        for harness in self._harnesses:
            harness.close()


def ids(rows: Any) -> list[int]:
    """The ids of the rows of a run or a table, in the order in which they came."""
    table = getattr(rows, "table", rows)
    found: list[int] = table["id"].to_pylist()
    return found


def by_partition(rows: Iterable[Mapping[str, Any]]) -> dict[int, list[int]]:
    """The ids of rows with a column `partition`, in the order in which they came."""
    found: dict[int, list[int]] = {}
    for row in rows:
        found.setdefault(row["partition"], []).append(row["id"])
    return found
