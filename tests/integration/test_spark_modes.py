"""What Spark does by settings of its own: second attempts at slow tasks, plans that adapt, executors that come and go.

On a real standalone cluster. That each of them took place is read in Spark's event log.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from ..waiting import wait_until
from .patient_driver import PARTS
from .processes import Process, end_session, python_workers, send
from .servers import Cluster, standalone_cluster
from .tally import Tally, published_epoch

JAVA_SERIALIZER = "org.apache.spark.serializer.JavaSerializer"

#: Half of the tasks of a stage have ended: any other one that takes a little longer gets a second attempt.
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.minTaskRuntime": "50ms",
}
#: Without Kryo, frames are rows of a DataFrame, whose plan Spark may change while it runs.
ADAPTATION = {
    "spark.serializer": JAVA_SERIALIZER,
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.coalescePartitions.enabled": "true",
    "spark.sql.adaptive.coalescePartitions.minPartitionSize": "1g",
}
ALLOCATION = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.timeout": "1s",
    "spark.dynamicAllocation.minExecutors": "0",
    "spark.dynamicAllocation.initialExecutors": "1",
    "spark.dynamicAllocation.executorIdleTimeout": "1s",
    "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    with standalone_cluster(tmp_path_factory.mktemp("cluster"), cores=2) as cluster:
        yield cluster


@contextmanager
def running(
    path: Path, cluster: Cluster, settings: Mapping[str, str], *, script: str | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """`arroyo run`, or a script, on the cluster, with an event log in the pipeline's folder."""
    log = path.parent / "events"
    log.mkdir()
    given = {
        "spark.ui.enabled": "false",
        "spark.executor.cores": "1",
        "spark.executor.memory": "512m",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": log.as_uri(),
        "spark.eventLog.compress": "false",
        **settings,
    }
    pairs = [f"{name}={value}" for name, value in given.items()]
    if script is None:
        words = [word for pair in pairs for word in ("--conf", pair)]
        command = [str(Path(sys.executable).with_name("arroyo")), "run", str(path), "--master", cluster.url, *words]
    else:
        command = [sys.executable, str(Path(__file__).with_name(script)), str(path), cluster.url, *pairs]
    with (path.parent / "driver.log").open("wb") as out:
        driver = subprocess.Popen(command, stdout=out, stderr=out, cwd=path.parent, start_new_session=True)
    try:
        yield driver
    finally:
        end_session(driver.pid)
        driver.wait()


def processes(cluster: Cluster) -> list[Process]:
    return [each for worker in cluster.workers for each in worker.processes()]


def told(path: Path) -> str:
    return (path.parent / "driver.log").read_text(errors="replace")[-3000:]


def events(path: Path) -> str:
    """Spark's event log, whatever its files are."""
    files = sorted(found for found in (path.parent / "events").rglob("*") if found.is_file())
    return "\n".join(found.read_text(errors="replace") for found in files)


@pytest.mark.timeout(900)
def test_speculative_attempts_change_nothing(cluster, tmp_path):
    job = Tally.of_epochs(20)
    path = job.write(tmp_path / "job")
    with running(path, cluster, SPECULATION) as driver:
        wait_until(lambda: driver.poll() is not None or published_epoch(path.parent) >= 2)
        # A worker that stands still makes its task the slowest; it goes on when another attempt may have ended.
        slow = python_workers(processes(cluster))[0]
        reached = published_epoch(path.parent)
        send(slow, signal.SIGSTOP)
        try:
            wait_until(lambda: driver.poll() is not None or published_epoch(path.parent) > reached)
        finally:
            send(slow, signal.SIGCONT)
        assert driver.wait() == 0, told(path)
    assert '"Speculative":true' in events(path)
    print(job.assert_exact(path.parent, tmp_path / "expected"))


@pytest.mark.timeout(900)
def test_plans_that_adapt_change_nothing(cluster, tmp_path):
    job = Tally.of_epochs(8)
    path = job.write(tmp_path / "job")
    with running(path, cluster, ADAPTATION) as driver:
        assert driver.wait() == 0, told(path)
    assert "AdaptiveSparkPlan" in events(path)
    print(job.assert_exact(path.parent, tmp_path / "expected"))


@pytest.mark.timeout(900)
def test_executors_that_come_and_go_change_nothing(cluster, tmp_path):
    job = Tally.of_epochs(24)
    path = job.write(tmp_path / "job")
    with running(path, cluster, ALLOCATION, script="patient_driver.py") as driver:
        assert driver.wait() == 0, told(path)
    found = events(path)
    assert found.count('"SparkListenerExecutorRemoved"') >= PARTS
    assert found.count('"SparkListenerExecutorAdded"') > PARTS
    print(job.assert_exact(path.parent, tmp_path / "expected"))
