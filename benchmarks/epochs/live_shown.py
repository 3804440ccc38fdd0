"""From an event to the line that a reader of `arroyo run` gets: `std.stdout` in live workers, at once."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import yaml

from .jobs import PARALLELISM
from .latency import RATE

INTERVALS = ("5s", "1s")
RUNS = 3
RUN_S = 20
#: More than the first epoch, in which workers start: its clock is behind by that.
WARM_UP_S = 7


class Line(msgspec.Struct):
    counter: int
    timestamp: datetime


def pipeline(folder: Path, interval: str, *, rows: int, rate: int = RATE) -> dict[str, Any]:
    shown = {"at_once": True, "limit": rows}
    return {
        "name": "shown",
        "parallelism": PARALLELISM,
        "execution": "live",
        "checkpoint": {"url": f"{folder}/state", "interval": interval},
        "nodes": [
            {"id": "ticks", "operator": "impulse.source", "config": {"rate": rate, "count": rows}},
            {"id": "keyed", "operator": "std.key_by", "inputs": ["ticks"], "config": {"keys": ["counter"]}},
            {"id": "screen", "operator": "std.stdout", "inputs": ["keyed"], "config": shown},
        ],
    }


def latencies_s(pieces: list[tuple[float, bytes]], *, rows: int, warm_up_s: float) -> np.ndarray[Any, Any]:
    """Of all rows but the first; `pieces` are what was read, and when. A row that is missing is a `RuntimeError`.

    A line is seen with the piece that has its end.
    """
    ends = np.cumsum([len(piece) for _, piece in pieces])
    moments = np.array([moment for moment, _ in pieces])
    lines = b"".join(piece for _, piece in pieces).splitlines(keepends=True)
    found = [msgspec.json.decode(line, type=Line) for line in lines]
    if sorted(line.counter for line in found) != list(range(rows)):
        raise RuntimeError(f"{len(found)} lines were printed, not each of {rows} rows once")
    made_s = np.array([line.timestamp.timestamp() for line in found])
    seen_s = moments[np.searchsorted(ends, np.cumsum([len(line) for line in lines]))]
    waits_s: np.ndarray[Any, Any] = (seen_s - made_s)[made_s >= made_s.min() + warm_up_s]
    return waits_s


def run_once(folder: Path, interval: str, *, rows: int, warm_up_s: float, rate: int = RATE) -> np.ndarray[Any, Any]:
    folder.mkdir()
    file = folder / "shown.yaml"
    file.write_text(yaml.safe_dump(pipeline(folder, interval, rows=rows, rate=rate), sort_keys=False))
    arroyo = Path(sys.executable).with_name("arroyo")
    command = [str(arroyo), "run", str(file), "--master", f"local[{PARALLELISM}]"]
    pieces = []
    log = folder / "process.log"
    with log.open("w") as errors, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as process:
        assert process.stdout is not None
        while piece := os.read(process.stdout.fileno(), 1 << 16):
            pieces.append((time.time(), piece))
    if process.returncode:
        raise RuntimeError(log.read_text())
    return latencies_s(pieces, rows=rows, warm_up_s=warm_up_s)


def measure(folder: Path) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for number in range(RUNS):
        for interval in INTERVALS:
            waits_s = run_once(folder / f"{interval}_{number}", interval, rows=RATE * RUN_S, warm_up_s=WARM_UP_S)
            for percent, name in ((50, "half of the rows"), (99, "99 of 100")):
                label = f"an epoch every {interval}: {name} within"
                found.setdefault(label, []).append(float(np.percentile(waits_s, percent)))
    return found
