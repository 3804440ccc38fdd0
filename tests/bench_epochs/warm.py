"""What a session pays once: a small q5 of Nexmark in a new session, and again: `python warm.py FOLDER FILE`."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from cores import pipeline
from epochs import PARALLELISM, Stopwatch, run

from arroyo_core.spark.session import create_session

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
        subprocess.run([sys.executable, __file__, str(folder / str(number)), str(file)], check=True)
        first, *later = json.loads(file.read_text())
        found["the first run"].append(first)
        found["later runs"] += later
    return found


if __name__ == "__main__":
    run_all(Path(sys.argv[1]), Path(sys.argv[2]))
