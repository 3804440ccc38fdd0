"""Jobs whose epochs are timed: what the cases share."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any

import yaml
from pyspark.sql import SparkSession

from arroyo_core import Pipeline
from arroyo_core.runtime.results import EpochResult, JobResult
from arroyo_core.runtime.stop import StopSignal

PARALLELISM = 2


class Stopwatch:
    """Notes when each epoch was committed, and stops the job after some of them or some rows."""

    def __init__(self, *, epochs: int | None = None, rows: int | None = None) -> None:
        self.stop = StopSignal()
        self._epochs = epochs
        self._rows = rows
        self.committed_s: list[float] = []
        self.results: list[EpochResult] = []
        self.started_s = 0.0

    def on_start(self, job: JobResult) -> None:
        self.started_s = time.perf_counter()

    def on_epoch(self, result: EpochResult, job: JobResult) -> None:
        self.committed_s.append(time.perf_counter())
        self.results.append(result)
        if (self._epochs and job.epochs >= self._epochs) or (self._rows and job.source_rows >= self._rows):
            self.stop.request()

    def gaps_s(self, *, skip: int) -> list[float]:
        """From one epoch to the next, without the first ones, which are cold, and the last, which is a stop's."""
        moments = self.committed_s[skip:-1]
        return [after - before for before, after in itertools.pairwise(moments)]


def plan(folder: Path, document: dict[str, Any]) -> Pipeline:
    """The pipeline, as a file in the folder says it; imports the plugins that it needs."""
    file = folder / f"{document['name']}.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    return Pipeline.from_yaml(file)


def run(
    spark: SparkSession, folder: Path, document: dict[str, Any], watch: Stopwatch, *, execution: str = "jobs"
) -> JobResult:
    """Run a pipeline until its end, or until the watch stops it."""
    return plan(folder, document).run(spark, listener=watch, stop=watch.stop, execution=execution)
