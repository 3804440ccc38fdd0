"""A sink whose process dies at a chosen call to its storage, and is started again."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from arroyo_testing import ParallelHarness
from arroyo_testing.crash_filesystem import CrashFileSystem, running
from arroyo_testing.machine import Crash, CrashPoint, Disk, Life, Mode

from arroyo_core.api import ArroyoSchema, Watermark

#: What comes in one epoch: batches, and the watermark after them.
Epoch = tuple[Sequence[pa.RecordBatch], int]
ROOT = "lab"


def new_disk() -> Disk:
    return Disk(folders={ROOT})


def run_epochs(
    make: Callable[[], Any],
    stream: ArroyoSchema,
    epochs: Sequence[Epoch],
    disk: Disk,
    life: Life,
    after_commit: Callable[[int], None] = lambda epoch: None,
) -> None:
    """Run epochs to the end of the data; after its death the process begins with the last checkpoint."""
    with running(disk, life), ParallelHarness(make, inputs=[stream], parallelism=2) as harness:

        def persist(act: Callable[[], Any]) -> Any:
            try:
                return act()
            except Crash:
                CrashFileSystem.current = (disk, Life())
                harness.crash()
                return act()

        def run(number: int) -> Mapping[str, Mapping[int, bytes]]:
            batches, watermark_us = epochs[number]
            for batch in batches:
                harness.process(batch)
            harness.watermark(Watermark.event_time(watermark_us))
            if number == len(epochs) - 1:
                harness.end_of_data()
            return harness.checkpoint()

        for number in range(len(epochs)):
            staged = persist(lambda number=number: run(number))
            persist(lambda staged=staged: harness.commit(staged))
            after_commit(number)
            if number < len(epochs) - 1:
                persist(harness.restore)


def crash_points(life: Life, *, wanted: Callable[[str], bool] = lambda path: True) -> list[CrashPoint]:
    """Before, within and after each change that a life made to such paths."""
    return [
        CrashPoint(number, mode)
        for number, call in enumerate(life.calls, start=1)
        if call.is_mutation and wanted(call.path)
        for mode in (Mode.BEFORE, *([Mode.TORN] if call.can_tear else []), Mode.AFTER)
    ]


def visible(disk: Disk) -> dict[str, list[dict[str, Any]]]:
    """The rows of each file that readers of the folder see."""
    found = {}
    for name, data in sorted(disk.files.items()):
        path = name.removeprefix(f"{ROOT}/out/")
        if name.startswith(f"{ROOT}/out/") and not path.startswith("_"):
            found[path] = pq.read_table(io.BytesIO(data)).to_pylist()
    return found


def visible_numbers(disk: Disk) -> list[int]:
    """The column `n` of all of them."""
    return sorted(row["n"] for rows in visible(disk).values() for row in rows)
