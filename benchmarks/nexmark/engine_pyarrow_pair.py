"""Two bare loops over pyarrow side by side, each over half of the files with one thread; for queries without state."""

from __future__ import annotations

import multiprocessing
import sys
import time
from dataclasses import replace
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pyarrow as pa

from . import engine_pyarrow
from .tasks import Task, Timing

LOOPS = 2


def half_of(task: Task, number: int) -> Task:
    """Every second file of each table, in a folder of links."""
    data = Path(task.scratch) / str(number)
    for table in Path(task.data).iterdir():
        if table.is_dir():
            (data / table.name).mkdir(parents=True)
            for path in sorted(table.iterdir())[number::LOOPS]:
                (data / table.name / path.name).symlink_to(path)
    return replace(task, data=str(data), answer=f"{task.answer}/{number}")


def run_half(task: Task, number: int, barrier: Barrier) -> None:
    pa.set_cpu_count(1)
    half = half_of(task, number)
    barrier.wait()
    engine_pyarrow.run(half)


def main() -> None:
    task = Task.read(Path(sys.argv[1]))
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(LOOPS + 1)
    processes = [context.Process(target=run_half, args=(task, number, barrier)) for number in range(LOOPS)]
    for process in processes:
        process.start()
    # Libraries are imported by then.
    barrier.wait()
    start = time.perf_counter()
    for process in processes:
        process.join()
    job_s = time.perf_counter() - start
    if any(process.exitcode for process in processes):
        raise SystemExit("a loop failed")
    Timing(job_s=job_s, epochs=1, versions={"pyarrow": pa.__version__}).write(Path(sys.argv[2]))


if __name__ == "__main__":
    main()
