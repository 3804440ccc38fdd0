"""Several pipelines in one session: one fails for good, one is stopped, one finishes, and each is exact."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest
from prometheus_client.parser import text_string_to_metric_families

from arroyo_core import Pipeline
from arroyo_core.runtime.stop import StopSignal
from arroyo_core.runtime.watch import EpochTimeoutError

from ..waiting import wait_until
from .conftest import Arroyo, assert_same_rows
from .processes import end_session
from .servers import free_port

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PIPELINE = """\
name: {name}
checkpoint: {{url: {folder}/state, interval: 1s}}
nodes:
  - {{id: ticks, operator: impulse.source, config: {{{ticks}}}}}
  - {{id: fault, operator: chaos.strike, inputs: [ticks], config: {fault}}}
  - {{id: rows, operator: std.project, inputs: [fault], config: {{expressions: {{n: cast(counter as bigint)}}}}}}
  - {{id: keyed, operator: std.key_by, inputs: [rows], config: {{keys: [n]}}}}
  - {{id: files, operator: filesystem.sink, inputs: [keyed], config: {{path: {folder}/{name}}}}}
"""
STUCK = """\
name: stuck
checkpoint: {{url: {folder}/state, interval: 1s, timeout: 2s}}
nodes:
  - {{id: rows, operator: chaos.stuck, config: {{file: {folder}/processes}}}}
  - {{id: nowhere, operator: std.blackhole, inputs: [rows]}}
"""
#: Rows of the pipeline that finishes, and how many in a second: it takes long enough to outlast the others.
COUNT, RATE = 600, 20


def write(folder: Path, name: str, ticks: str) -> None:
    """A pipeline that fails for good once there is a file `NAME.fail`."""
    fault = f"{{deed: fail, marker: {folder}/{name}, times: 99, trigger: {folder}/{name}.fail}}"
    path = folder / "pipelines" / f"{name}.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(PIPELINE.format(name=name, folder=folder, ticks=ticks, fault=fault))


class Command:
    """`arroyo run`, and what it says."""

    def __init__(self, folder: Path, *arguments: object) -> None:
        self._log = folder / "stderr.log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [str(Path(sys.executable).with_name("arroyo")), "run", *map(str, arguments), "--progress", "plain"],
                stderr=log,
                cwd=folder,
                env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"},
                start_new_session=True,
            )

    @property
    def said(self) -> str:
        """Without the times of lines."""
        return re.sub(r"^\d{4}-\S+Z ", "", self._log.read_text(), flags=re.MULTILINE)

    def wait_for(self, *texts: str) -> None:
        def is_said() -> bool:
            said = self.said
            return all(text in said for text in texts)

        wait_until(lambda: is_said() or self.process.poll() is not None, problem=lambda: self.said)
        assert is_said(), self.said


@contextmanager
def running(folder: Path, *arguments: object) -> Iterator[Command]:
    command = Command(folder, *arguments)
    try:
        yield command
    finally:
        end_session(command.process.pid)
        command.process.wait()


def committed(folder: Path, name: str) -> int:
    """How many rows a pipeline has committed, which are the first numbers, each once."""
    with duckdb.connect() as db:
        ((count,),) = db.execute(f"select count(*) from read_parquet('{folder}/{name}/part-*.parquet')").fetchall()
    return assert_same_rows(folder / name, f"select range::bigint as n from range({count})")


def outcomes(table: str) -> list[list[str]]:
    """The first two columns of the table at the end."""
    return [line.split()[:2] for line in table.splitlines()[1:] if line]


@pytest.mark.timeout(600)
def test_one_fails_for_good_one_is_stopped_and_one_finishes(tmp_path: Path, arroyo: Arroyo) -> None:
    port = free_port()
    write(tmp_path, "failing", "rate: 50")
    write(tmp_path, "stopped", "rate: 50")
    write(tmp_path, "whole", f"rate: {RATE}, count: {COUNT}")
    with running(tmp_path, tmp_path / "pipelines", "--metrics-port", port) as command:
        command.wait_for("\nfailing: epoch    2", "\nstopped: epoch    2", "\nwhole:   epoch    2")
        (tmp_path / "failing.fail").touch()
        command.wait_for("\nerror: failing: failed; 2 others run on: operator 'fault', subtask 0")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            families = {family.name: family for family in text_string_to_metric_families(answer.read().decode())}
        counted = {sample.labels["job_id"]: sample.value for sample in families["arroyo_epochs"].samples}
        assert arroyo("stop", f"{tmp_path}/state#stopped").returncode == 0
        command.wait_for("\nstopped: stopped; 1 other runs on")
        # As documented: that of the one that failed, when the others have ended.
        assert command.process.wait() == 2
    assert counted.keys() == {"failing", "stopped", "whole"}
    assert min(counted.values()) >= 2
    table, _, end = command.said.partition("\njob ")[2].partition("\nfailing failed:\n")
    assert outcomes(table) == [["failing", "failed"], ["stopped", "stopped"], ["whole", "finished"]]
    assert "arroyo: operator 'fault', subtask 0" in end
    assert "this row is cursed" in end
    before = {name: committed(tmp_path, name) for name in ("failing", "stopped", "whole")}
    assert before["whole"] == COUNT
    # Started again, two go on where they were, also the one that failed, and the third has nothing left to do.
    (tmp_path / "failing.fail").unlink()
    with running(tmp_path, tmp_path / "pipelines") as command:
        command.wait_for("\nfailing: going on after epoch", "\nstopped: going on after epoch")
        command.wait_for("\nfailing: epoch ", "\nstopped: epoch ")
        command.process.send_signal(signal.SIGTERM)
        assert command.process.wait() == 0
    table = command.said.partition("\njob ")[2]
    assert outcomes(table) == [["failing", "stopped"], ["stopped", "stopped"], ["whole", "finished"]]
    after = {name: committed(tmp_path, name) for name in before}
    assert after["whole"] == COUNT
    assert after["failing"] > before["failing"]
    assert after["stopped"] > before["stopped"]


def test_an_epoch_that_is_cancelled_is_that_of_one_pipeline(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, "endless", "rate: 50")
    stuck = tmp_path / "stuck.yaml"
    stuck.write_text(STUCK.format(folder=tmp_path))
    stop = StopSignal()
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(Pipeline.from_yaml(tmp_path / "pipelines/endless.yaml").run, spark, stop=stop)
        with pytest.raises(EpochTimeoutError):
            Pipeline.from_yaml(stuck).run(spark, max_restarts=0)
        stop.request()
        result = other.result()
    assert (result.restarts, result.is_finished) == (0, False)
    assert committed(tmp_path, "endless") == result.source_rows > 0
    # Each has had a pool of Spark's scheduler for itself.
    scheduler = spark.sparkContext._jsc.sc()
    assert all(scheduler.getPoolForName(name).isDefined() for name in ("endless", "stuck"))


def test_a_second_signal_ends_all_of_them_at_once(tmp_path: Path) -> None:
    write(tmp_path, "endless", "rate: 50")
    (tmp_path / "pipelines" / "stuck.yaml").write_text(STUCK.format(folder=tmp_path))
    with running(tmp_path, tmp_path / "pipelines", "--in-process") as command:
        command.wait_for("\nendless: epoch    2")
        wait_until((tmp_path / "processes").exists)
        command.process.send_signal(signal.SIGTERM)
        command.wait_for("once more to stop at once", "\nendless: stopped; 1 other runs on")
        command.process.send_signal(signal.SIGINT)
        assert command.process.wait() == 130
    assert "\nstuck    interrupted " in command.said
    assert "\nendless  stopped " in command.said
    assert committed(tmp_path, "endless") > 0
