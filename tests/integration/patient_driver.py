"""`python patient_driver.py PIPELINE MASTER KEY=VALUE...`: runs a job in parts, in one Spark context.

Between two parts it waits until Spark has given all executors back.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from pyspark import SparkContext

from arroyo_core import Pipeline
from arroyo_core.runtime.results import EpochResult, JobResult
from arroyo_core.runtime.stop import StopSignal
from arroyo_core.spark.session import start_spark

PARTS = 3
EPOCHS = 4
PATIENCE_S = 120


class StopAfter:
    """Stops the job after so many epochs."""

    def __init__(self, epochs: int) -> None:
        self.stop = StopSignal()
        self._epochs = epochs

    def on_start(self, job: JobResult) -> None:
        return

    def on_epoch(self, result: EpochResult, job: JobResult) -> None:
        if job.epochs >= self._epochs:
            self.stop.request()


def wait_for_nobody(context: SparkContext) -> None:
    """Until the driver alone is left; Spark counts it among the executors."""
    deadline = time.monotonic() + PATIENCE_S
    while (left := context._jsc.sc().getExecutorMemoryStatus().size()) > 1:
        if time.monotonic() > deadline:
            raise SystemExit(f"{left - 1} executors are still there")
        # Spark tells nobody that an executor has gone. This is a program of its own, without the tests' `wait_until`.
        time.sleep(0.1)


def main(path: str, master: str, *settings: str) -> None:
    context = start_spark("parts", master=master, conf=dict(each.split("=", 1) for each in settings))
    assert isinstance(context, SparkContext)
    pipeline = Pipeline.from_yaml(Path(path))
    for _ in range(PARTS):
        part = StopAfter(EPOCHS)
        assert not pipeline.run(context, listener=part, stop=part.stop).is_finished, "the job was too short"
        wait_for_nobody(context)
    assert pipeline.run(context).is_finished
    context.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
