"""What checkpoints every 2 s cost: the time for the same rows with them, and in one epoch."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from arroyo_core.spark.session import create_session

from .jobs import PARALLELISM, Stopwatch, run

EVENTS = 40_000_000
RUNS = 3


def pipeline(folder: Path, number: int, interval: str) -> dict[str, Any]:
    return {
        "name": f"overhead_{number}_{interval}",
        "parallelism": PARALLELISM,
        "checkpoint": {"url": f"{folder}/state", "interval": interval},
        "nodes": [
            {"id": "bids", "operator": "nexmark.source", "config": {"events": EVENTS, "table": "bid"}},
            {
                "id": "timed",
                "operator": "std.watermark",
                "inputs": ["bids"],
                "config": {"column": "date_time", "max_lateness": "1s"},
            },
            {
                "id": "counts",
                "operator": "std.tumbling_window",
                "inputs": ["timed"],
                "config": {"size": "10s", "keys": ["auction"], "aggregates": [{"function": "count", "as": "bids"}]},
            },
            {"id": "nowhere", "operator": "std.blackhole", "inputs": ["counts"]},
        ],
    }


def measure(folder: Path) -> dict[str, list[float]]:
    spark = create_session("bench", master=f"local[{PARALLELISM}]")
    found: dict[str, list[float]] = {"every 2 s": [], "one epoch": []}
    for number in range(RUNS + 1):
        for name, interval in (("every 2 s", "2s"), ("one epoch", "1h")):
            started = time.perf_counter()
            run(spark, folder, pipeline(folder, number, interval), Stopwatch())
            # The first run of both warms up.
            if number:
                found[name].append(time.perf_counter() - started)
    spark.stop()
    return found
