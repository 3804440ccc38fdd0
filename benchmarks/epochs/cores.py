"""q5 of Nexmark with parallelism 2 on two cores, and with parallelism 1 on one.

A run is a process of its own: `python -m benchmarks.epochs.cores CORES FOLDER FILE EXECUTION`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import yaml

from arroyo_core.spark.session import create_session

from ..modules import ROOT, module_command
from .jobs import Stopwatch, plan, run

EXAMPLE = ROOT / "examples" / "nexmark" / "q5.yaml"
EVENTS = 10_000_000
RUNS = 3


def pipeline(folder: Path, cores: int, *, events: int = EVENTS) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())
    document["parallelism"] = cores
    document["checkpoint"] = {"url": f"{folder}/state", "interval": "10s"}
    for node in document["nodes"]:
        if node["operator"] == "nexmark.source":
            node["config"]["events"] = events
        if node["operator"] == "filesystem.sink":
            node["config"]["path"] = f"{folder}/out"
    return document


def run_once(cores: int, folder: Path, file: Path, execution: str) -> None:
    """In a process that may use so many cores; Spark and its workers inherit that."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    folder.mkdir(parents=True)
    document = pipeline(folder, cores)
    # As `arroyo run` does: Spark is started for a pipeline that is planned, so that its workers have the plugins.
    plan(folder, document)
    spark = create_session("bench", master=f"local[{cores}]", is_live=execution == "live")
    started = time.perf_counter()
    run(spark, folder, document, Stopwatch(), execution=execution)
    file.write_text(json.dumps(time.perf_counter() - started))
    spark.stop()


def measure(folder: Path, *, execution: str = "jobs") -> dict[str, list[float]]:
    found: dict[str, list[float]] = {"two cores": [], "one core": []}
    for number in range(RUNS):
        for cores, name in ((2, "two cores"), (1, "one core")):
            place, file = folder / f"{cores}_{number}", folder / "seconds_of_run.json"
            subprocess.run(module_command(__name__, cores, place, file, execution), check=True)
            found[name].append(json.loads(file.read_text()))
    return found


if __name__ == "__main__":
    run_once(int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
