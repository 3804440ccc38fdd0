"""A folder that gains files, and a source that watches it, epoch by epoch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from arroyo_filesystem.plugin import SourceConstructor
from arroyo_testing import SourceHarness

from arroyo_core.api import Registry, TaskInfo

SCHEMA = {"n": "int64"}
WATCH_US = 10_000_000
SECOND_US = 1_000_000


class Folder:
    """A folder, and a job that reads it; the job lists the folder when it is started, as a driver does."""

    def __init__(self, files: Any, path: Path, **config: Any) -> None:
        self.path = path
        self.config = {"watch": WATCH_US, **config}
        self._files = files
        self._resolved: Any = None
        self.harness = SourceHarness(lambda: SourceConstructor().with_config(self._resolved, Registry()))

    def write(self, name: str, *numbers: int, modified_us: int | None = None) -> None:
        """A file that appears at once, as of this time."""
        path, draft = self.path / name, self.path / "_draft"
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text("".join(f'{{"n": {number}}}\n' for number in numbers))
        if modified_us is not None:
            os.utime(draft, ns=(modified_us * 1000, modified_us * 1000))
        draft.rename(path)

    def start(self, **config: Any) -> None:
        self.config |= config
        written = {key: value for key, value in self.config.items() if value is not None}
        message = self._files.source_config(self.path, schema=SCHEMA, **{"format": "json", **written})
        self._resolved = SourceConstructor().resolve(message)

    def run(self, **options: Any) -> Any:
        return self.harness.run(ends_at_wait=True, **options)

    def look(self, **options: Any) -> Any:
        """An epoch in which it is time to look."""
        self.harness.clock.advance(WATCH_US / SECOND_US)
        return self.run(**options)

    def read(self, **options: Any) -> list[int]:
        """What is read of files that are new, which takes two epochs."""
        return [*numbers(self.look(**options)), *numbers(self.run(**options))]

    def state(self, tables: Sequence[str] = ("f", "s", "k")) -> dict[str, dict[str, Any]]:
        """All that the source keeps, by table."""
        source = SourceConstructor().with_config(self._resolved, Registry()).inner
        task = TaskInfo(
            job_id="test", operator_id="operator", operator_name="filesystem.source", task_index=0, parallelism=1
        )
        manager = self.harness._state.open(source, task, ()).manager
        found = {"f": manager.get_global_keyed_state("f").get_all()}
        for name in tables[1:]:
            found[name] = manager.get_partitioned_keyed_state(name, lambda _: 0).get_restored()
        return found

    def names(self) -> list[str]:
        return sorted(str(path.relative_to(self.path)) for path in self.path.rglob("*") if path.is_file())


def numbers(done: Any) -> list[int]:
    return sorted(done.table["n"].to_pylist())
