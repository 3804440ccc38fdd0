"""From `kill -9` of the driver to the first new committed epoch, beside a plain start of Spark and one job."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

import yaml

from .jobs import PARALLELISM

RUNS = 3

PLAIN = f"""
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[{PARALLELISM}]").config("spark.driver.host", "127.0.0.1").getOrCreate()
frames = spark.range(0, {PARALLELISM}, 1, {PARALLELISM})
frames.mapInArrow(lambda batches: batches, "id long").repartition({PARALLELISM}, "id").count()
"""


def pipeline(folder: Path) -> dict[str, object]:
    return {
        "name": "recovery",
        "parallelism": PARALLELISM,
        "checkpoint": {"url": f"{folder}/state", "interval": "1s"},
        "nodes": [
            {"id": "bids", "operator": "nexmark.source", "config": {"rate": 200_000, "table": "bid"}},
            {"id": "keyed", "operator": "std.key_by", "inputs": ["bids"], "config": {"keys": ["auction"]}},
            {"id": "out", "operator": "filesystem.sink", "inputs": ["keyed"], "config": {"path": f"{folder}/out"}},
        ],
    }


def start(file: Path) -> subprocess.Popen[str]:
    command = [str(Path(sys.executable).with_name("arroyo")), "run", str(file), "--master", f"local[{PARALLELISM}]"]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)


def wait_for_epochs(lines: IO[str], count: int) -> None:
    """Until so many epochs are committed."""
    for line in lines:
        count -= line.startswith("epoch ")
        if count == 0:
            return
    raise RuntimeError("the job ended too soon")


def measure(folder: Path) -> dict[str, list[float]]:
    file = folder / "recovery.yaml"
    file.write_text(yaml.safe_dump(pipeline(folder), sort_keys=False))
    recovered: list[float] = []
    plain: list[float] = []
    job = start(file)
    for _ in range(RUNS):
        assert job.stderr is not None
        wait_for_epochs(job.stderr, 3)
        os.killpg(job.pid, signal.SIGKILL)
        killed = time.perf_counter()
        job.wait()
        job = start(file)
        assert job.stderr is not None
        wait_for_epochs(job.stderr, 1)
        recovered.append(time.perf_counter() - killed)
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
        started = time.perf_counter()
        environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
        subprocess.run([sys.executable, "-c", PLAIN], check=True, stderr=subprocess.DEVNULL, env=environment)
        plain.append(time.perf_counter() - started)
        job = start(file)
    os.killpg(job.pid, signal.SIGKILL)
    job.wait()
    return {"from kill -9 to the first new epoch": recovered, "a plain start of Spark and one job": plain}
