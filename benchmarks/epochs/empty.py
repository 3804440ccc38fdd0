"""What an epoch costs in which no row comes: two waves, offsets as state, beside a bare Spark job of the same shape."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from arroyo_core.spark.session import create_session

from .bare import bare_job
from .jobs import PARALLELISM, Stopwatch, run

#: Few, since pauses between them grow to ten seconds.
EPOCHS = 10
WARM_UP = 4
BARE_JOBS = 30


def pipeline(folder: Path) -> dict[str, Any]:
    """A row in some hours; an epoch waits a millisecond for it."""
    return {
        "name": "empty",
        "parallelism": PARALLELISM,
        "checkpoint": {"url": f"{folder}/state", "interval": "1ms"},
        "nodes": [
            {"id": "ticks", "operator": "impulse.source", "config": {"rate": 0.0001}},
            {"id": "keyed", "operator": "std.key_by", "inputs": ["ticks"], "config": {"keys": ["counter"]}},
            {"id": "nowhere", "operator": "std.blackhole", "inputs": ["keyed"]},
        ],
    }


def measure(folder: Path, *, execution: str = "jobs") -> dict[str, list[float]]:
    """From the start of an epoch until it is accepted, for empty ones are followed by pauses."""
    spark = create_session("bench", master=f"local[{PARALLELISM}]")
    for _ in range(BARE_JOBS):
        bare_job(spark)
    watch = Stopwatch(epochs=WARM_UP + EPOCHS)
    run(spark, folder, pipeline(folder), watch, execution=execution)
    empty_s = [result.duration_s for result in watch.results[WARM_UP:] if not result.source_rows]
    bare_s: list[float] = []
    for _ in range(BARE_JOBS):
        started = time.perf_counter()
        bare_job(spark)
        bare_s.append(time.perf_counter() - started)
    spark.stop()
    return {"empty epoch": empty_s, "bare Spark job": bare_s}
