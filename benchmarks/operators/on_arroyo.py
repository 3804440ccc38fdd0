"""Arroyo on Spark: source, watermark, the operator, sink; in a session like the one that `arroyo run` starts."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import yaml

from arroyo_core import Pipeline
from arroyo_core.spark.session import create_session

from ..nexmark.dataset import Dataset
from ..nexmark.tasks import COMPRESSION, PARALLELISM, Task, Timing
from .cases import COLUMNS, EPOCHS, MAX_LATENESS_MS, Case, case_of


def pipeline(task: Task) -> dict[str, Any]:
    """The pipeline file, as data."""
    case = case_of(task.case)
    inputs = [f"{table}_in_time" for table in case.tables]
    sink = {"path": task.answer, "format": "parquet", "compression": COMPRESSION, **case.sink}
    return {
        "name": f"bench_{case.name}",
        "parallelism": PARALLELISM,
        "checkpoint": {"url": f"{task.scratch}/state", "interval": "1h", "rows": epoch_rows(task, case)},
        "nodes": [
            *(node for table in case.tables for node in _stream(table, f"{task.data}/{table}")),
            {"id": "measured", "operator": case.operator, "inputs": inputs, "config": dict(case.config)},
            {"id": "files", "operator": "filesystem.sink", "inputs": ["measured"], "config": sink},
        ],
    }


def epoch_rows(task: Task, case: Case) -> int:
    """The rows of an epoch. Sources share them evenly, so this is by the largest."""
    largest = max(Dataset(Path(task.data), 0).rows(table) for table in case.tables)
    return -(-largest * len(case.tables) // EPOCHS)


def _stream(table: str, path: str) -> list[dict[str, Any]]:
    source = {"path": path, "format": "parquet", "columns": list(COLUMNS[table]), "event_time_field": "date_time"}
    return [
        {"id": table, "operator": "filesystem.source", "config": source},
        {
            "id": f"{table}_in_time",
            "operator": "std.watermark",
            "inputs": [table],
            "config": {"max_lateness": f"{MAX_LATENESS_MS}ms"},
        },
    ]


def main() -> None:
    task = Task.read(Path(sys.argv[1]))
    file = Path(task.scratch) / f"{task.case}.yaml"
    file.write_text(yaml.safe_dump(pipeline(task), sort_keys=False))
    session = create_session("bench", master=f"local[{PARALLELISM}]")
    start = time.perf_counter()
    result = Pipeline.from_yaml(file).run(session)
    Timing(job_s=time.perf_counter() - start, epochs=result.epochs).write(Path(sys.argv[2]))
    session.stop()


if __name__ == "__main__":
    main()
