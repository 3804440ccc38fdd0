"""A live job that goes from one subtask to two while rows flow: from its last commit before to its first one after."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from arroyo_core import Pipeline, RescaleSignal
from arroyo_core.runtime.results import EpochResult, JobResult
from arroyo_core.spark.session import create_session

from .jobs import PARALLELISM, Stopwatch

RUNS = 5
#: Before the job is rescaled, and after.
EPOCHS = 10


class Rescaler(Stopwatch):
    """Asks for more subtasks after some epochs, and stops the job some epochs later."""

    def __init__(self) -> None:
        super().__init__()
        self.rescale = RescaleSignal()
        self.pause_s: float | None = None
        self._width = 0

    def on_epoch(self, result: EpochResult, job: JobResult) -> None:
        super().on_epoch(result, job)
        if self._width and job.parallelism != self._width:
            self.pause_s = self.committed_s[-1] - self.committed_s[-2]
        self._width = job.parallelism
        if job.epochs == EPOCHS:
            self.rescale.request(PARALLELISM)
        elif job.epochs >= 2 * EPOCHS and self.pause_s is not None:
            self.stop.request()


def pipeline(folder: Path, number: int) -> dict[str, Any]:
    return {
        "name": f"rescale_{number}",
        "parallelism": 1,
        "checkpoint": {"url": f"{folder}/state", "interval": "100ms"},
        "nodes": [
            {"id": "bids", "operator": "nexmark.source", "config": {"rate": 10_000, "table": "bid"}},
            {
                "id": "counts",
                "operator": "std.updating_aggregate",
                "inputs": ["bids"],
                "config": {"keys": ["auction"], "aggregates": [{"function": "count", "as": "bids"}]},
            },
            {"id": "out", "operator": "std.blackhole", "inputs": ["counts"]},
        ],
    }


def measure(folder: Path) -> dict[str, list[float]]:
    spark = create_session("bench", master=f"local[{PARALLELISM}]")
    pauses, epochs = [], []
    for number in range(RUNS):
        watch = Rescaler()
        file = folder / f"{number}.yaml"
        file.write_text(yaml.safe_dump(pipeline(folder, number), sort_keys=False))
        Pipeline.from_yaml(file).run(spark, listener=watch, stop=watch.stop, rescale=watch.rescale, execution="live")
        if watch.pause_s is None:
            raise RuntimeError("the job ended before it was rescaled")
        pauses.append(watch.pause_s)
        epochs += watch.gaps_s(skip=5)
    spark.stop()
    return {"from the last commit before to the first one after": pauses, "from one commit to the next": epochs}
