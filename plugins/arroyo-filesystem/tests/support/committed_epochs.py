"""Sources driven epoch by epoch, with their dead letters committed as the driver does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from arroyo_core.api import TaskInfo
from arroyo_core.state import commit_data

#: Who the harness says a source is.
TASK = TaskInfo(job_id="test", operator_id="operator", operator_name="filesystem.source", task_index=0, parallelism=1)


def run_and_commit(files: Any, path: Path, config: dict[str, Any], *, parallelism: int, epoch_rows: int) -> list[int]:
    """The column `n` of all rows, of epochs of so many rows."""
    harness = files.source(path, **config)
    rows: list[int] = []
    while True:
        done = harness.run(rows=epoch_rows, parallelism=parallelism)
        rows += done.table["n"].to_pylist()
        commit(files, path, config, harness)
        if done.is_final:
            harness.close()
            return rows


def commit(files: Any, path: Path, config: dict[str, Any], harness: Any) -> None:
    """What the driver does after an epoch is accepted."""
    source = files.make_source(path, **config).inner
    assert source.is_committing()

    class Context:
        task_info = TASK
        table_manager = harness._state.open(source, TASK, ()).manager

    source.handle_commit(harness._state.epoch - 1, commit_data(harness._state.metadata), Context())


def committed_letters(folder: Path) -> list[dict[str, Any]]:
    """All dead letters that are visible in a folder."""
    return [json.loads(line) for file in sorted(folder.glob("bad-*.jsonl")) for line in file.read_text().splitlines()]
