"""Sources and operators that never come back: what fails beside them is told, what makes no progress is cancelled."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from arroyo_core import OperatorError, Pipeline
from arroyo_core.runtime.job import SilentListener
from arroyo_core.runtime.results import EpochResult, JobResult
from arroyo_core.runtime.stop import StopSignal
from arroyo_core.runtime.watch import EpochTimeoutError
from arroyo_core.spark.shuffles import FrameExchange, RowExchange

from ..waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BLOCKED = """
name: blocked
parallelism: 2
checkpoint: {{interval: 1h}}
nodes:
  - {{id: rows, operator: chaos.stuck, config: {{file: {folder}/processes}}}}
  - {{id: strike, operator: chaos.strike, inputs: [rows], config: {{deed: fail, marker: {folder}/struck, times: 9}}}}
  - {{id: keyed, operator: std.key_by, inputs: [strike], config: {{keys: [n]}}}}
  - {{id: nowhere, operator: std.blackhole, inputs: [keyed]}}
"""


def processes(folder: Path) -> set[int]:
    return {int(line) for line in (folder / "processes").read_text().splitlines()}


@pytest.mark.parametrize("exchange", [FrameExchange, RowExchange])
def test_a_failing_operator_is_reported_while_its_source_never_comes_back(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchange: type
) -> None:
    argument = spark if exchange is RowExchange else spark.sparkContext
    monkeypatch.setattr("arroyo_core.spark.executor.exchange_for", lambda _: exchange(argument))
    file = tmp_path / "pipeline.yaml"
    file.write_text(BLOCKED.format(folder=tmp_path))
    with pytest.raises(OperatorError, match=r"operator 'strike'.*this row is cursed"):
        Pipeline.from_yaml(file).run(spark)
    # No other task gets a process in which the source still runs.
    stuck = processes(tmp_path)
    assert stuck
    wait_until(lambda: not any(Path(f"/proc/{process}").exists() for process in stuck))


STUCK = """
name: stuck
parallelism: 2
checkpoint: {{url: {folder}/state, interval: 1h, timeout: 3s}}
nodes:
  - {{id: rows, operator: chaos.stuck, config: {{file: {folder}/processes}}}}
  - {{id: keyed, operator: std.key_by, inputs: [rows], config: {{keys: [n]}}}}
  - {{id: nowhere, operator: std.blackhole, inputs: [keyed]}}
"""

SLOW = """
name: slow
parallelism: 2
checkpoint: {{url: {folder}/state, interval: {interval}, timeout: 2s}}
nodes:
  - {{id: ticks, operator: impulse.source, config: {{rate: {rate}, count: {count}}}}}
  - {{id: keyed, operator: std.key_by, inputs: [ticks], config: {{keys: [counter]}}}}
  - {{id: files, operator: filesystem.sink, inputs: [keyed], config: {{path: {folder}/out, format: json}}}}
"""


def test_an_epoch_without_progress_is_cancelled_and_said_so(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "pipeline.yaml"
    file.write_text(STUCK.format(folder=tmp_path))
    with pytest.raises(EpochTimeoutError, match=r"epoch 1 made no progress for 3s \(checkpoint.timeout\)") as raised:
        Pipeline.from_yaml(file).run(spark, max_restarts=1)
    assert "wave 0: 0 of 2 tasks have ended" in str(raised.value)
    assert "subtask 0 of wave 0 waiting for source 'rows' (1 rows in and out)" in str(raised.value)
    assert any("it is cancelled" in record.getMessage() for record in caplog.records)
    # Both runs were tried, and nothing of either is left: no process, and no heartbeat.
    stuck = processes(tmp_path)
    assert len(stuck) == 4
    wait_until(lambda: not any(Path(f"/proc/{process}").exists() for process in stuck))
    assert not [path for path in tmp_path.rglob("heartbeats/*") if path.is_file()]


@pytest.mark.parametrize(("interval", "rate", "count"), [("8s", 20, 160), ("8s", 0.001, 1)], ids=["busy", "waiting"])
def test_an_epoch_that_takes_longer_than_the_timeout_and_moves_is_not_cancelled(
    spark: SparkSession, tmp_path: Path, interval: str, rate: float, count: int
) -> None:
    file = tmp_path / "pipeline.yaml"
    file.write_text(SLOW.format(folder=tmp_path, interval=interval, rate=rate, count=count))
    stop = StopSignal()
    durations_s: list[float] = []

    class Once(SilentListener):
        def on_epoch(self, result: EpochResult, job: JobResult) -> None:
            durations_s.append(result.duration_s)
            stop.request()

    result = Pipeline.from_yaml(file).run(spark, listener=Once(), stop=stop)
    assert max(durations_s) > 5
    assert result.restarts == 0
