"""From an event to where a reader finds it, of peers: a row in a committed file, or a line on their standard output."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow.parquet as pq

from ..modules import ENVIRONMENT, module_command
from ..nexmark.environments import BUILD, python_of
from ..nexmark.processes import BenchError, become_subreaper, inherited_environment, kill_session
from .streams import StreamTask

RATE = 10_000
RUN_S = 20
WARM_UP_S = 7
#: For all of it, with the start of an engine.
TIMEOUT_S = 300

#: A row: its number, when it was made and when it was found, in seconds.
Found: TypeAlias = tuple[int, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    name: str
    title: str
    environment: str
    #: Finds number and time in a line of its output, and makes seconds of the time.
    pattern: re.Pattern[bytes]
    seconds: Callable[[str], float]
    committed: Callable[[Path], Iterator[Found]]

    @property
    def module(self) -> str:
        return f"{__package__}.peer_{self.name}"


def moment_s(text: str) -> float:
    """Of a time in UTC as Flink writes it."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def spark_commits(folder: Path) -> Iterator[Found]:
    """A file counts from when the log of the sink names it first; a log file is renamed to its name."""
    seen = set()
    for log in sorted((folder / "_spark_metadata").glob("[0-9]*"), key=lambda path: int(path.name.partition(".")[0])):
        for line in log.read_text().splitlines()[1:]:
            path = Path(json.loads(line)["path"].removeprefix("file://"))
            if path not in seen:
                seen.add(path)
                rows = pq.read_table(folder / path.name)
                for number, made_us in zip(*(column.to_pylist() for column in rows.columns), strict=True):
                    yield number, made_us / 1e6, log.stat().st_ctime


def flink_commits(folder: Path) -> Iterator[Found]:
    """A file is renamed when it is committed; before, its name begins with a dot."""
    for path in folder.glob("part-*"):
        for line in path.read_text().splitlines():
            number, made = line.split(",")
            yield int(number), moment_s(made.strip('"')), path.stat().st_ctime


PEERS = {
    peer.name: peer
    for peer in (
        Peer(
            name="structured_streaming",
            title="Structured Streaming, micro-batches one after the other",
            environment="structured_streaming",
            pattern=re.compile(rb"\|(\d+) *\|(\d+) *\|"),
            seconds=lambda text: int(text) / 1e6,
            committed=spark_commits,
        ),
        Peer(
            name="flink",
            title="PyFlink Table API",
            environment="flink",
            pattern=re.compile(rb"\+I\[(\d+), ([^\]]+)\]"),
            seconds=moment_s,
            committed=flink_commits,
        ),
    )
}


def measure(peer: Peer, *, is_shown: bool, rate: int = RATE, run_s: float = RUN_S, warm_up_s: float = WARM_UP_S) -> Any:
    """Seconds within which half and 99 of 100 rows were found; a row that is missing, or came twice, is an error."""
    rows = round(rate * run_s)
    with tempfile.TemporaryDirectory(prefix="live-", dir=BUILD) as name:
        folder = Path(name)
        task = _task(folder, rows=rows, rate=rate, is_shown=is_shown)
        pieces = _run(peer, task, folder)
        found = list(lines(peer, pieces)) if is_shown else list(peer.committed(Path(task.answer)))
    if sorted(number for number, *_ in found) != list(range(rows)):
        raise BenchError(f"{len(found)} rows were found, not each of {rows} once")
    made_s, found_s = (np.array([item[place] for item in found]) for place in (1, 2))
    waits_s = (found_s - made_s)[made_s >= made_s.min() + warm_up_s]
    p50_s, p99_s = np.percentile(waits_s, [50, 99])
    return {"p50_s": float(p50_s), "p99_s": float(p99_s), "rows": len(waits_s)}


def realtime() -> Mapping[str, str]:
    """What Real-Time Mode says to a stream of lines, and to one of files."""
    with tempfile.TemporaryDirectory(prefix="live-", dir=BUILD) as name:
        folder = Path(name)
        task = _task(folder, rows=100, rate=100, is_shown=True, is_realtime=True)
        _run(PEERS["structured_streaming"], task, folder)
        found: dict[str, str] = json.loads(Path(task.answer).read_text())
        return found


def lines(peer: Peer, pieces: list[tuple[float, bytes]]) -> Iterator[Found]:
    """The rows of an output of which each piece was read at a moment; a line is found with its end."""
    ends = np.cumsum([len(piece) for _, piece in pieces])
    text = b"".join(piece for _, piece in pieces)
    for match in peer.pattern.finditer(text):
        place = int(np.searchsorted(ends, match.end(), side="right"))
        yield int(match[1]), peer.seconds(match[2].decode()), pieces[min(place, len(pieces) - 1)][0]


def _task(folder: Path, **values: Any) -> StreamTask:
    (folder / "scratch").mkdir()
    task = StreamTask(answer=str(folder / "answer"), scratch=str(folder / "scratch"), **values)
    task.write(folder / "task.json")
    return task


def _run(peer: Peer, task: StreamTask, folder: Path) -> list[tuple[float, bytes]]:
    """What the process prints, and when it was read; a failure is a `BenchError` with the end of its log."""
    become_subreaper()
    command = module_command(peer.module, folder / "task.json", python=python_of(peer.environment))
    log = folder / "process.log"
    pieces = []
    with log.open("wb") as errors:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=inherited_environment() | ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        )
    assert process.stdout is not None
    timer = threading.Timer(TIMEOUT_S, kill_session, [process.pid])
    timer.start()
    try:
        while piece := os.read(process.stdout.fileno(), 1 << 18):
            pieces.append((time.time(), piece))
        process.wait()
    finally:
        timer.cancel()
        kill_session(process.pid)
        process.stdout.close()
    if process.wait():
        raise BenchError(f"{peer.title} failed:\n{log.read_text(errors='replace')[-1500:]}")
    return pieces
