"""Live workers on a real Spark: exact through the loss of a worker, a stop, and a change of how epochs run."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from arroyo_core import OperatorError, Pipeline
from arroyo_core.cli.main import main
from arroyo_core.errors import SetupError
from arroyo_core.runtime.job import SilentListener
from arroyo_core.runtime.rescale import RescaleSignal, Wish
from arroyo_core.runtime.results import EpochResult, JobResult
from arroyo_core.runtime.stop import StopSignal
from arroyo_core.runtime.watch import EpochTimeoutError

from ..waiting import wait_until
from .conftest import assert_same_rows
from .test_stuck import BLOCKED, STUCK, processes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PIPELINE = """
name: live
parallelism: 2
execution: live
checkpoint: {{url: {folder}/state, rows: 20000}}
nodes:
  - {{id: bids, operator: filesystem.source, config: {{path: {bids}, format: parquet, batch_rows: 5000}}}}
  - {{id: keyed, operator: std.key_by, inputs: [bids], config: {{keys: [auction]}}}}
{more}  - {{id: files, operator: filesystem.sink, inputs: [{last}], config: {{path: {folder}/out, format: parquet}}}}
"""
#: At the second batch of an epoch: from each of two senders comes one at least, however fast they are.
STRIKE = """\
  - id: strike
    operator: chaos.strike
    inputs: [keyed]
    config: {{deed: {deed}, marker: {folder}/struck, at: 2, trigger: {folder}/committed}}
"""


def write(folder: Path, text: str, **values: object) -> Path:
    file = folder / "pipeline.yaml"
    file.write_text(text.format(folder=folder, **values))
    return file


class StopAfter(SilentListener):
    def __init__(self, epochs: int) -> None:
        self.stop = StopSignal()
        self._epochs = epochs

    def on_epoch(self, result: EpochResult, job: JobResult) -> None:
        if job.epochs == self._epochs:
            self.stop.request()


class NoteCommit(SilentListener):
    """Makes a file when the first epoch is committed."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def on_epoch(self, result: EpochResult, job: JobResult) -> None:
        self._file.touch()


@pytest.mark.parametrize("order", [("live", "jobs"), ("jobs", "live")])
def test_a_job_is_stopped_in_one_execution_and_goes_on_in_the_other(
    spark: SparkSession, bids: Path, tmp_path: Path, order: tuple[str, str]
) -> None:
    file = write(tmp_path, PIPELINE, bids=bids, more="", last="keyed")
    listener = StopAfter(2)
    first = Pipeline.from_yaml(file).run(spark, listener=listener, stop=listener.stop, execution=order[0])
    assert not first.is_finished
    second = Pipeline.from_yaml(file, parallelism=1).run(spark, execution=order[1])
    assert (second.is_finished, second.resumed_from) == (True, first.epochs)
    assert assert_same_rows(tmp_path / "out", "select * from bids", bids=bids) == 200_000


class Heard(RescaleSignal):
    """Says when the job has dealt with a new wish."""

    def __init__(self) -> None:
        super().__init__()
        self.is_heard = threading.Event()

    def pass_on(self, wish: Wish) -> None:
        is_new = wish.id not in self._told
        super().pass_on(wish)
        if is_new:
            self.is_heard.set()


class RescaleAfter(SilentListener):
    """Asks by the command for a parallelism after an epoch, by its number, and lets no other epoch begin before."""

    def __init__(self, file: Path, wishes: dict[int, int]) -> None:
        self.signal = Heard()
        self._file = file
        self._wishes = wishes

    def on_epoch(self, result: EpochResult, job: JobResult) -> None:
        if result.epoch in self._wishes:
            self.signal.is_heard.clear()
            assert main(["rescale", str(self._file), "--parallelism", str(self._wishes[result.epoch])]) == 0
            self.signal.is_heard.wait()


def test_a_running_job_is_rescaled_by_the_command_and_more_than_the_slots_is_refused(
    spark: SparkSession, bids: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = write(tmp_path, PIPELINE, bids=bids, more="", last="keyed")
    listener = RescaleAfter(file, {1: 3, 3: 1})
    result = Pipeline.from_yaml(file).run(spark, listener=listener, rescale=listener.signal)
    assert (result.is_finished, result.generation, result.parallelism, result.source_rows) == (True, 2, 1, 200_000)
    said = [record.getMessage() for record in caplog.records]
    assert any("parallelism 3 is refused" in text and "Spark runs 2 tasks at once" in text for text in said)
    assert any("live goes on with 1 subtasks beside each other" in text for text in said)
    assert assert_same_rows(tmp_path / "out", "select * from bids", bids=bids) == 200_000


def test_a_job_goes_on_where_the_process_of_a_worker_is_killed(spark: SparkSession, bids: Path, tmp_path: Path) -> None:
    strike = STRIKE.format(deed="kill_worker", folder=tmp_path)
    file = write(tmp_path, PIPELINE, bids=bids, more=strike, last="strike")
    result = Pipeline.from_yaml(file).run(spark, listener=NoteCommit(tmp_path / "committed"))
    assert (result.is_finished, result.restarts) == (True, 1)
    assert "worker" in result.last_error
    assert assert_same_rows(tmp_path / "out", "select * from bids", bids=bids) == 200_000


def test_a_failing_operator_is_reported_while_its_source_never_comes_back(spark: SparkSession, tmp_path: Path) -> None:
    file = write(tmp_path, BLOCKED)
    with pytest.raises(OperatorError, match=r"operator 'strike'.*this row is cursed"):
        Pipeline.from_yaml(file).run(spark, execution="live")
    # No other task gets a process in which the source still runs.
    stuck = processes(tmp_path)
    assert stuck
    wait_until(lambda: not any(Path(f"/proc/{process}").exists() for process in stuck))


def test_an_epoch_without_progress_is_cancelled_and_said_so(spark: SparkSession, tmp_path: Path) -> None:
    file = write(tmp_path, STUCK)
    with pytest.raises(EpochTimeoutError, match=r"epoch 1 made no progress for 3s") as raised:
        Pipeline.from_yaml(file).run(spark, max_restarts=1, execution="live")
    assert "0 of 2 workers have ended the epoch" in str(raised.value)
    assert "subtask 0 of wave 0 waiting for source 'rows'" in str(raised.value)
    stuck = processes(tmp_path)
    wait_until(lambda: not any(Path(f"/proc/{process}").exists() for process in stuck))


def test_more_subtasks_than_slots_are_jobs_or_refused(
    spark: SparkSession, bids: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = write(tmp_path, PIPELINE, bids=bids, more="", last="keyed")
    with pytest.raises(SetupError, match="Spark runs 2 tasks at once, and the pipeline has 3 subtasks"):
        Pipeline.from_yaml(file, parallelism=3).run(spark)
    assert Pipeline.from_yaml(file, parallelism=3).run(spark, execution="auto").is_finished
    said = [record.getMessage() for record in caplog.records]
    assert any("each epoch is a Spark job: Spark runs 2 tasks at once" in text for text in said)
    assert assert_same_rows(tmp_path / "out", "select * from bids", bids=bids) == 200_000
