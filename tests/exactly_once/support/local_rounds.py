"""Crash and recovery on real local files: the folder is noted at every call to the system that changes it."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from arroyo_core.state import storage

from .crash_rounds import Order, Round, judge
from .laboratory import input_files, make_plugins, plan_job, run_job
from .verdict import Truth, check_reader, check_result, table_rows, visible_rows

#: Calls that change a folder, as Python's audit events name them; each is told before it is done.
CHANGES = {"open", "os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"}
#: Where a sync costs nothing; a wreck is what processes see, and they see what is not synced too.
MEMORY = Path("/dev/shm")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


@dataclass(frozen=True)
class Wreck:
    """What a crash before `name`, or half-way through the write before it, leaves."""

    name: str
    files: dict[str, bytes]
    folders: tuple[str, ...]


class Watch:
    """Notes a folder at every change. A hook of the interpreter stays for ever: it sleeps but inside `watching`."""

    def __init__(self) -> None:
        self._root: Path | None = None
        self._lock = threading.Lock()
        #: A thread's own looks at the folder are not to be noted.
        self._looking = threading.local()
        self._last_written = ""
        self.wrecks: list[Wreck] = []
        sys.addaudithook(self._hook)

    @contextmanager
    def watching(self, root: Path) -> Iterator[list[Wreck]]:
        self._root, self.wrecks, self._last_written = root, [], ""
        try:
            yield self.wrecks
        finally:
            self._root = None

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        root = self._root
        if root is None or event not in CHANGES or getattr(self._looking, "is_so", False):
            return
        if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & WRITING):
            return
        paths = [os.fsdecode(path) for path in arguments[:2] if isinstance(path, str | bytes | os.PathLike)]
        # A path relative to an open folder is one of a recursive deletion.
        if not any(path.startswith(str(root)) or not path.startswith("/") for path in paths):
            return
        self._looking.is_so = True
        try:
            with self._lock:
                self._note(root, event, paths)
        finally:
            self._looking.is_so = False

    def _note(self, root: Path, event: str, paths: list[str]) -> None:
        name = f"{event} {' '.join(path.removeprefix(str(root)) for path in paths)}"
        files, folders = read_tree(root)
        self.wrecks.append(Wreck(f"before {name}", files, folders))
        half_written = files.get(self._last_written)
        if half_written:
            torn = files | {self._last_written: half_written[: len(half_written) // 2]}
            self.wrecks.append(Wreck(f"half-way, before {name}", torn, folders))
        is_write = event == "open"
        self._last_written = os.path.relpath(paths[0], root) if is_write else ""


def read_tree(root: Path) -> tuple[dict[str, bytes], tuple[str, ...]]:
    files, folders = {}, []
    for folder, _, names in os.walk(root):
        folders.append(os.path.relpath(folder, root))
        for name in names:
            path = Path(folder, name)
            files[os.path.relpath(path, root)] = path.read_bytes()
    return files, tuple(folders)


@lru_cache(maxsize=1)
def _watch() -> Watch:
    return Watch()


class LocalLaboratory:
    """Runs the pipeline on a folder of this machine, from any wreck of it."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._plugins = make_plugins()
        base = Path(tempfile.mkdtemp(prefix="exactly-once-", dir=MEMORY if MEMORY.is_dir() else None))
        atexit.register(shutil.rmtree, base, ignore_errors=True)
        self._root, self._source = base / "lab", base / "in"
        self._source.mkdir()
        for name, data in input_files().items():
            (self._source / name).write_bytes(data)
        self._root.mkdir()
        with _watch().watching(self._root) as self.wrecks:
            self.run()
        files = self.files()
        self.truth = Truth(visible_rows(files, "lab/out"), visible_rows(files, "lab/bad"), self.tables())

    def run(self) -> None:
        storage._provider.cache_clear()
        plan = plan_job(self._plugins, str(self._root), source=str(self._source))
        run_job(plan, self._plugins, lanes=self._order.lanes())

    def files(self) -> dict[str, bytes]:
        return {f"lab/{name}": data for name, data in read_tree(self._root)[0].items()}

    def tables(self):
        return table_rows(f"{self._root}/state")

    def crash_point(self, index: int) -> Round:
        """Put a wreck in place, and recover from it."""
        wreck = self.wrecks[index]
        shutil.rmtree(self._root)
        for folder in wreck.folders:
            (self._root / folder).mkdir(parents=True, exist_ok=True)
        for name, data in wreck.files.items():
            (self._root / name).write_bytes(data)

        def recover() -> None:
            check_reader(self.files(), "lab", self.truth)
            self.run()
            check_result(self.files(), "lab", self.tables(), self.truth)

        return judge(wreck.name, recover)


@lru_cache
def _laboratory(order: Order) -> LocalLaboratory:
    return LocalLaboratory(order)


def run_local_rounds(order: Order, numbers: Sequence[int]) -> list[Round]:
    laboratory = _laboratory(order)
    return [laboratory.crash_point(number) for number in numbers]
