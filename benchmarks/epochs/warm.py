"""What a session pays once: a small q5 of Nexmark in a new session, and again.

A session is a process of its own: `python -m benchmarks.epochs.warm FOLDER FILE`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from arroyo_core.spark.session import create_session

from ..modules import module_command
from .cores import pipeline
from .jobs import PARALLELISM, Stopwatch, run

EVENTS = 10_000
SESSIONS = 3
RUNS = 4


def run_all(folder: Path, file: Path) -> None:
    spark = create_session("bench", master=f"local[{PARALLELISM}]")
    seconds = []
    for number in range(RUNS):
        place = folder / str(number)
        place.mkdir(parents=True)
        started = time.perf_counter()
        run(spark, place, pipeline(place, PARALLELISM, events=EVENTS), Stopwatch())
        seconds.append(time.perf_counter() - started)
    file.write_text(json.dumps(seconds))
    spark.stop()


def measure(folder: Path) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {"the first run": [], "later runs": []}
    for number in range(SESSIONS):
        file = folder / "seconds_of_runs.json"
        subprocess.run(module_command(__name__, folder / str(number), file), check=True)
        first, *later = json.loads(file.read_text())
        found["the first run"].append(first)
        found["later runs"] += later
    return found


if __name__ == "__main__":
    run_all(Path(sys.argv[1]), Path(sys.argv[2]))
