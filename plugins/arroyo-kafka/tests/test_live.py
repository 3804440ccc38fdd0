"""In live workers a consumer is not opened again for each epoch."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import arroyo_kafka.source as source_module
import pytest
from arroyo_kafka.open_consumers import open_consumers
from arroyo_testing.live import live_executor
from confluent_kafka import Consumer

from arroyo_core.pipeline import plan_text
from arroyo_core.plugin import installed_plugins
from arroyo_core.runtime.job import Job

from .support.cluster import Cluster
from .support.sources import SCHEMA, messages

MakeTopic = Callable[..., str]
PARTITIONS = 2
COUNT = 40


def pipeline(folder: Path, servers: str, topic: str) -> str:
    """Reads a topic to its end, a few rows in each epoch, into files."""
    config = {"bootstrap_servers": servers, "topic": topic, "format": "json", "schema": SCHEMA, "until": "latest"}
    document = {
        "name": "live",
        "parallelism": PARTITIONS,
        "checkpoint": {"url": (folder / "state").as_uri(), "interval": "1h", "rows": 4},
        "nodes": [
            {"id": "messages", "operator": "kafka.source", "config": config},
            {"id": "keyed", "operator": "std.key_by", "inputs": ["messages"], "config": {"keys": ["id"]}},
            {
                "id": "files",
                "operator": "filesystem.sink",
                "inputs": ["keyed"],
                "config": {"path": str(folder / "out"), "format": "json"},
            },
        ],
    }
    return json.dumps(document)


def test_one_consumer_of_each_subtask_serves_many_epochs(
    cluster: Cluster, topic: MakeTopic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = topic(PARTITIONS)
    for partition in range(PARTITIONS):
        numbers = range(partition * COUNT // 2, (partition + 1) * COUNT // 2)
        cluster.produce(name, messages(numbers), partition=partition)
    made: list[Consumer] = []
    make = source_module.make_consumer
    monkeypatch.setattr(source_module, "make_consumer", lambda *given: made.append(make(*given)) or made[-1])
    plugins = installed_plugins()
    plan = plan_text(pipeline(tmp_path, cluster.bootstrap_servers, name), plugins=plugins, environment={})
    with closing(live_executor(plugins)) as executor:
        result = Job(plan, executor, plugins=plugins, storage_url=(tmp_path / "state").as_uri()).run()
    assert (result.is_finished, result.restarts, result.source_rows) == (True, 0, COUNT)
    assert result.epochs >= COUNT // (4 * PARTITIONS)
    assert len(made) == PARTITIONS
    open_consumers.close_all()
    rows = [json.loads(line) for file in (tmp_path / "out").glob("part-*") for line in file.read_text().splitlines()]
    assert sorted(row["id"] for row in rows) == list(range(COUNT))
