"""Jobs of former versions: `python -m tests.lives.former FOLDER` leaves there what one that was killed half-way left.

To be run with the code of a version whose checkpoints must still be restored, in a folder with `pipeline.yaml`; `state`
and `out`, as a zip file, are the fixture then. Checkpoints know where sinks write: a pipeline that writes to memory, at
`memory://former-out`, can go on in another folder.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import fsspec
from arroyo_testing.lanes import InlineLanes, Killed, WatchedLanes

from arroyo_core.pipeline import plan_pipeline
from arroyo_core.plugin import installed_plugins
from arroyo_core.runtime.events import Event, Published
from arroyo_core.runtime.job import Job
from arroyo_core.runtime.local import LocalExecutor
from arroyo_core.runtime.results import JobResult

EPOCHS = 3
OUTPUTS = "/former-out"


def make_orders() -> None:
    """The input, in memory: a checkpoint knows where its input was. Four files, about in the order of their times."""
    draw = random.Random(16)
    files = fsspec.filesystem("memory")
    for number in range(4):
        lines = [
            f"{order},2026-01-01T00:{order // 10 // 60:02}:{order // 10 % 60:02}Z,{draw.randrange(1000)}"
            for order in range(number * 500, number * 500 + 500)
        ]
        files.pipe_file(f"/former-orders/{number}.csv", "\n".join(["id,moment,amount", *lines, ""]).encode())


def save_outputs() -> None:
    """Put what was written in memory into `out`."""
    files = fsspec.filesystem("memory")
    for name in files.find(OUTPUTS):
        path = Path("out") / name.removeprefix(OUTPUTS + "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(files.cat_file(name))


def load_outputs() -> None:
    """Forget what is in memory, and put `out` there."""
    files = fsspec.filesystem("memory")
    if files.exists(OUTPUTS):
        files.rm(OUTPUTS, recursive=True)
    for path in Path("out").rglob("*"):
        if path.is_file():
            files.pipe_file(f"{OUTPUTS}/{path.relative_to('out').as_posix()}", path.read_bytes())


def run(*, parallelism: int | None = None, epochs: int | None = None) -> JobResult | None:
    """Run `pipeline.yaml` of the current folder to its end, or until so many more epochs are published."""
    plugins = installed_plugins()
    plan = plan_pipeline(Path("pipeline.yaml"), plugins=plugins, environment={}, parallelism=parallelism)
    published = 0

    def die_in_time(event: Event) -> None:
        nonlocal published
        published += isinstance(event, Published)
        if published == epochs:
            raise Killed

    lanes = InlineLanes() if epochs is None else WatchedLanes(die_in_time)
    executor = LocalExecutor(plugins)
    try:
        return Job(plan, executor, plugins=plugins, storage_url=Path("state").absolute().as_uri(), lanes=lanes).run()
    except Killed:
        return None


if __name__ == "__main__":
    os.chdir(sys.argv[1])
    make_orders()
    if run(epochs=EPOCHS) is not None:
        raise SystemExit("the job ended too early")
    save_outputs()
