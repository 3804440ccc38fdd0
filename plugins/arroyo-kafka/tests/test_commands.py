"""`arroyo kafka` on a job that has read a part of its topic."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from arroyo_kafka.broker import Broker
from arroyo_kafka.open_consumers import open_consumers

from arroyo_core.cli.main import main
from arroyo_core.pipeline import plan_pipeline
from arroyo_core.plugin import installed_plugins
from arroyo_core.runtime.local import LocalExecutor
from arroyo_core.runtime.stop import StopSignal
from arroyo_core.runtime.user_code import BundleOpener
from arroyo_core.spark.pipeline import Pipeline
from tests.waiting import wait_until

from .support.cluster import Cluster
from .support.sources import messages

MakeTopic = Callable[..., str]


class StopAfter:
    """Asks a job to stop when it has committed so many rows."""

    def __init__(self, rows: int, stop: StopSignal) -> None:
        self._rows = rows
        self._stop = stop

    def on_start(self, job: Any) -> None:
        return

    def on_epoch(self, result: Any, job: Any) -> None:
        if job.source_rows >= self._rows:
            self._stop.request()


class Job:
    """A pipeline from a topic to files, run in this process until it has read so many rows."""

    def __init__(self, folder: Path, servers: str, topic: str, *, more: str = "") -> None:
        self.file = folder / "copy.yaml"
        self.topic = topic
        self._out = folder / "out"
        self.file.write_text(
            f"""
name: copy
parallelism: 2
checkpoint: {{url: "{folder / "checkpoints"}", interval: 100ms}}
nodes:
  - id: orders
    operator: kafka.source
    config: {{bootstrap_servers: "{servers}", topic: {topic}, format: json, schema: {{id: int64, at: timestamp}},
      client: {{sasl.password: hunter2}}{more}}}
  - id: out
    operator: filesystem.sink
    inputs: [orders]
    config: {{path: "{self._out}", format: parquet}}
"""
        )

    def run(self, rows: int) -> None:
        plugins, stop = installed_plugins(), StopSignal()
        plan = plan_pipeline(self.file, plugins=plugins, environment=os.environ, bundles=BundleOpener())
        Pipeline(plan, plugins).run(executor=LocalExecutor(plugins), stop=stop, listener=StopAfter(rows, stop))
        open_consumers.close_all()

    def rows(self) -> list[int]:
        found: list[int] = ds.dataset(self._out, format="parquet").to_table()["id"].to_pylist()
        return sorted(found)


@pytest.fixture
def job(tmp_path: Path, broker: Broker, cluster: Cluster, topic: MakeTopic) -> Job:
    name = topic(2)
    for partition in range(2):
        cluster.produce(name, messages(range(partition * 10, partition * 10 + 5)), partition=partition)
    job = Job(tmp_path, broker.bootstrap_servers, name)
    job.run(10)
    return job


def output(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """What a command gives as JSON."""
    capsys.readouterr()
    assert main(["kafka", *arguments, "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_lag_is_between_the_checkpoint_and_the_ends(
    job: Job, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.produce(job.topic, messages([90, 91]), partition=1)
    # Nobody waits for offsets of the group, which are for tools only.
    rows: list[dict[str, Any]] = []
    wait_until(lambda: _all_committed(rows, output(capsys, "lag", str(job.file))), patience_s=60)
    assert [(row["partition"], row["position"], row["end"], row["lag"]) for row in rows] == [(0, 5, 5, 0), (1, 5, 7, 2)]
    assert {(row["group"], row["committed"]) for row in rows} == {("arroyo-copy-orders", 5)}


def _all_committed(rows: list[dict[str, Any]], told: list[dict[str, Any]]) -> bool:
    rows[:] = told
    return all(row["committed"] is not None for row in told)


def test_offsets_are_moved_by_a_new_checkpoint(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    before = output(capsys, "offsets", "show", str(job.file))
    assert [(row["partition"], row["offset"]) for row in before] == [(0, 5), (1, 5)]
    moving = ["kafka", "offsets", "set", str(job.file), "orders", f"{job.topic}:0=3", f"{job.topic}:1=earliest"]
    assert main(moving) == 1
    assert "nothing is changed" in capsys.readouterr().out
    assert main([*moving, "--yes"]) != 0
    assert "may be running" in capsys.readouterr().err
    assert main([*moving, "--yes", "--force"]) == 0
    after = output(capsys, "offsets", "show", str(job.file))
    assert [(row["partition"], row["offset"]) for row in after] == [(0, 3), (1, 0)]
    assert after[0]["epoch"] == before[0]["epoch"] + 1
    job.run(7)
    assert job.rows() == sorted([*range(5), *range(10, 15), 3, 4, *range(10, 15)])


@pytest.mark.parametrize(
    ("place", "reason"),
    [("{topic}:0=6", "has no offset 6"), ("{topic}:2=0", "the job does not read"), ("{topic}=1", "is not a place")],
)
def test_offsets_that_are_not_there_are_refused(
    job: Job, capsys: pytest.CaptureFixture[str], place: str, reason: str
) -> None:
    arguments = ["kafka", "offsets", "set", str(job.file), "orders", place.format(topic=job.topic), "--yes", "--force"]
    assert main(arguments) != 0
    assert reason in capsys.readouterr().err


def test_a_job_that_has_finished_is_not_moved(
    tmp_path: Path, broker: Broker, cluster: Cluster, topic: MakeTopic, capsys: pytest.CaptureFixture[str]
) -> None:
    name = topic()
    cluster.produce(name, messages(range(3)))
    job = Job(tmp_path, broker.bootstrap_servers, name, more=", until: latest")
    job.run(100)
    assert job.rows() == [0, 1, 2]
    assert main(["kafka", "offsets", "set", str(job.file), "orders", f"{name}:*=0", "--yes", "--force"]) != 0
    assert "has finished" in capsys.readouterr().err


def test_tail_decodes_as_the_source_does(job: Job, cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.produce(job.topic, [b"no JSON", None], partition=1, keys=[None, b"k"])
    capsys.readouterr()
    assert main(["kafka", "tail", str(job.file), "orders", "-n", "3", "--format", "json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    found = {(row["partition"], row["offset"]): row for row in rows}
    assert sorted(found) == [(0, 2), (0, 3), (0, 4), (1, 4), (1, 5), (1, 6)]
    assert found[0, 4]["rows"] == [{"id": 4, "at": "1970-01-01T00:00:04+00:00"}]
    assert found[1, 5]["error"]
    assert (found[1, 6]["rows"], found[1, 6]["key"]) == ([], b"k".hex())
    assert main(["kafka", "tail", str(job.file), "orders", "-n", "1"]) == 0
    assert f"{job.topic}[1]@6  tombstone" in capsys.readouterr().out


def test_topics_of_a_pipeline_and_of_brokers(job: Job, broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    for where in ([str(job.file)], ["--bootstrap-servers", broker.bootstrap_servers]):
        rows = {row["topic"]: row for row in output(capsys, "topics", *where)}
        assert (rows[job.topic]["partitions"], rows[job.topic]["messages"]) == (2, 10)
        assert "__consumer_offsets" not in rows


def test_client_settings_are_shown_nowhere(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["plan", str(job.file)], ["plan", str(job.file), "--format", "json"]):
        assert main(arguments) == 0
        shown = capsys.readouterr().out
        assert "hunter2" not in shown
    assert "sasl.password=***" in shown
