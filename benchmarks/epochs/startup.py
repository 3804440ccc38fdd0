"""From the start of `arroyo run` to the first row of its source, beside a bare start of a SparkSession."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import yaml

from .jobs import PARALLELISM

RUNS = 5

BARE = f"""
import time
from pyspark.sql import SparkSession
SparkSession.builder.master("local[{PARALLELISM}]").config("spark.driver.host", "127.0.0.1").getOrCreate()
print(time.time())
"""


def pipeline(folder: Path) -> dict[str, object]:
    """Rows of this source tell when they were made."""
    return {
        "name": "startup",
        "parallelism": PARALLELISM,
        "checkpoint": {"url": f"{folder}/state", "interval": "10s"},
        "nodes": [
            {"id": "ticks", "operator": "impulse.source", "config": {"count": 100}},
            {"id": "files", "operator": "filesystem.sink", "inputs": ["ticks"], "config": {"path": f"{folder}/out"}},
        ],
    }


def first_row_s(folder: Path) -> float:
    folder.mkdir()
    file = folder / "startup.yaml"
    file.write_text(yaml.safe_dump(pipeline(folder), sort_keys=False))
    arroyo = Path(sys.executable).with_name("arroyo")
    started = time.time()
    command = [str(arroyo), "run", str(file), "--master", f"local[{PARALLELISM}]"]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    made = [pq.read_table(path, columns=["timestamp"])["timestamp"] for path in (folder / "out").glob("part-*.parquet")]
    first = min(moment.timestamp() for column in made for moment in column.to_pylist())
    return float(first - started)


def bare_s() -> float:
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
    started = time.time()
    command = [sys.executable, "-c", BARE]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return float(done.stdout.strip().splitlines()[-1]) - started


def measure(folder: Path) -> dict[str, list[float]]:
    """In turn; the first of both compiles what is imported."""
    ours, bare = [], []
    for number in range(RUNS + 1):
        ours.append(first_row_s(folder / str(number)))
        bare.append(bare_s())
    return {"`arroyo run` to its first row": ours[1:], "a bare SparkSession": bare[1:]}
