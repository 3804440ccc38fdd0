"""Finds what a run leaves behind: threads, open files, child processes, files in temporary folders."""

from __future__ import annotations

import gc
import os
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from arroyo_testing.conformance.faults import ConformanceError, shown
from arroyo_testing.conformance.subject import empty_folder

#: How long what is ending may take to end.
_PATIENCE_S = 10.0
_LOOK_S = 0.02


@dataclass(frozen=True, slots=True)
class Belongings:
    """What this process has at a moment."""

    threads: frozenset[threading.Thread]
    files: dict[str, str]
    children: frozenset[int]


def belongings() -> Belongings:
    gc.collect()
    return Belongings(frozenset(threading.enumerate()), _open_files(), frozenset(_children()))


def check_leaves_nothing(name: str, run: Callable[[], object], *, fix: str) -> None:
    """Run twice, and look at what the second run adds: what a process has only once is nobody's leak."""
    with _own_folders():
        run()
    with _own_folders() as folders:
        before = belongings()
        run()
        _wait_until_gone(name, before, fix)
        # The harness has cleaned up its own; what is here is the operator's.
        strays = [path for folder in folders for path in sorted(folder.rglob("*"))]
        if strays:
            raise ConformanceError(
                f"{name} leaves {_count(len(strays), 'file')} behind, such as {strays[0].name!r}: "
                f"delete temporary files in {fix}"
            )


def _wait_until_gone(name: str, before: Belongings, fix: str) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        fault = _first_leftover(before, belongings(), fix)
        if fault is None:
            return
        if time.monotonic() >= deadline:
            raise ConformanceError(f"{name} leaves {fault}")
        time.sleep(_LOOK_S)


def _first_leftover(before: Belongings, after: Belongings, fix: str) -> str | None:
    threads = sorted(thread.name for thread in after.threads - before.threads)
    if threads:
        return f"{_count(len(threads), 'thread')} running, such as {threads[0]!r}: end and join it in {fix}"
    children = after.children - before.children
    if children:
        return f"{_count(len(children), 'child process')} running: end and wait for it in {fix}"
    opened = _opened(before.files, after.files)
    if opened:
        return f"{_count(len(opened), 'file')} open, such as {shown(opened[0])}: close it in {fix}"
    return None


def _opened(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Sockets and pipes have no names, and who has one may replace it at any time: of them only the number counts."""
    new = [target for number, target in after.items() if before.get(number) != target]
    closed = Counter(_kind(target) for number, target in before.items() if after.get(number) != target)
    opened = []
    for target in new:
        kind = _kind(target)
        if target != kind and closed[kind]:
            closed[kind] -= 1
        else:
            opened.append(target)
    return opened


def _kind(target: str) -> str:
    """`socket` of `socket:[4711]`, and the path of a file."""
    return target if target.startswith("/") else target.partition(":")[0]


def _count(number: int, what: str) -> str:
    if number == 1:
        return f"a {what}"
    return f"{number} {what}es" if what.endswith("s") else f"{number} {what}s"


@contextmanager
def _own_folders() -> Iterator[list[Path]]:
    """An empty working directory and an empty folder for temporary files, for this process."""
    with empty_folder() as folder:
        folders = [folder / "work", folder / "temporary"]
        for each in folders:
            each.mkdir()
        place, temporary = Path.cwd(), tempfile.tempdir
        variable = os.environ.get("TMPDIR")
        os.chdir(folders[0])
        tempfile.tempdir = os.environ["TMPDIR"] = str(folders[1])
        try:
            yield folders
        finally:
            os.chdir(place)
            tempfile.tempdir = temporary
            if variable is None:
                del os.environ["TMPDIR"]
            else:
                os.environ["TMPDIR"] = variable


def _open_files() -> dict[str, str]:
    """What each file descriptor leads to; nothing where the system does not tell."""
    found = {}
    folder = Path("/proc/self/fd")
    if not folder.is_dir():
        return {}
    for path in folder.iterdir():
        try:
            found[path.name] = str(path.readlink())
        except OSError:
            # The one that was opened to list the others.
            continue
    return found


def _children() -> Iterator[int]:
    for task in Path("/proc/self/task").glob("*/children"):
        try:
            yield from map(int, task.read_text().split())
        except OSError:
            continue
