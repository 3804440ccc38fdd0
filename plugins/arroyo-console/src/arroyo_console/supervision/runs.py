"""What a run has left in its folder: which process it is, how it ended, and whether it came as far as to run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arroyo_console.folders import EXIT, LOG, OUTPUT, PROCESS
from arroyo_console.journal import STARTED

#: Logs and outputs beyond this are cut: the older half of them goes.
MAX_FILE_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessFacts:
    """Which process a run says that it is."""

    pid: int
    process_start: int


def read_process(folder: Path) -> ProcessFacts | None:
    """None where it has not come as far as to say so."""
    document = _read(folder / PROCESS)
    if document is None or not isinstance(document.get("pid"), int) or document.get("process_start") is None:
        return None
    return ProcessFacts(pid=document["pid"], process_start=int(document["process_start"]))


def read_exit(folder: Path) -> tuple[int, int] | None:
    """The exit code and when; None where it runs, or was killed."""
    document = _read(folder / EXIT)
    if document is None or "exit_code" not in document:
        return None
    return int(document["exit_code"]), int(document["ended_us"])


def has_started(folder: Path) -> bool:
    """Whether the job has claimed its state, and runs."""
    return (folder / STARTED).exists()


def cut_files(folder: Path) -> None:
    """Keep what a run prints within bounds: it adds to the end of files, wherever that is."""
    for name in (LOG, OUTPUT):
        path = folder / name
        try:
            size = path.stat().st_size
            if size <= MAX_FILE_BYTES:
                continue
            with path.open("rb+") as file:
                file.seek(size - MAX_FILE_BYTES // 2)
                kept = file.read()
                file.seek(0)
                file.write(kept[kept.find(b"\n") + 1 :])
                file.truncate()
        except OSError:
            continue


def last_line(folder: Path) -> str:
    """The last line of the log: what the run said before it ended."""
    try:
        with (folder / LOG).open("rb") as file:
            file.seek(max(0, (folder / LOG).stat().st_size - 4_096))
            lines = file.read().decode(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1] if lines else ""


def _read(path: Path) -> dict[str, Any] | None:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) else None
