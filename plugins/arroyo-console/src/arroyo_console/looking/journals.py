"""Metrics and errors of a job, from the journals of its runs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from arroyo_devtools.lint.secrets import hide_secrets

from arroyo_console.journal import EPOCHS, EPOCHS_BEFORE, ERRORS, GRAPH, LATEST
from arroyo_console.values import (
    Bottleneck,
    EpochPoint,
    JobError,
    JobMetrics,
    OperatorMetrics,
    SubtaskMetrics,
)
from arroyo_core.cli.job_states import JobState

#: What is read of a file of lines, from its end.
TAIL_BYTES = 4 * 2**20
#: From this busy share on a node holds the job up.
BUSY = 0.5


def read_graph(folder: Path) -> Mapping[str, Any] | None:
    return _document(folder / GRAPH)


def last_line(folder: Path) -> Mapping[str, Any] | None:
    """The last committed epoch of a run, read cheaply: lists have many jobs."""
    for line in reversed(_raw_lines(folder / EPOCHS, 4_096)):
        with suppress(ValueError):
            return _object(line)
    return None


def read_metrics(job_id: str, folders: Sequence[Path], *, history: int) -> JobMetrics:
    """Those of a job; `folders` are those of its runs, newest first."""
    lines: list[Mapping[str, Any]] = []
    for folder in folders:
        for name in (EPOCHS, EPOCHS_BEFORE):
            if len(lines) < history:
                lines = [*_lines(folder / name, TAIL_BYTES), *lines]
    points = tuple(point_of(line) for line in lines[-history:])
    latest = next((found for folder in folders if (found := _document(folder / LATEST)) is not None), None)
    if latest is None:
        return JobMetrics(job_id=job_id, history=points)
    operators = _operators(latest)
    graph = next((found for folder in folders if (found := read_graph(folder)) is not None), None)
    return JobMetrics(
        job_id=job_id,
        epoch=latest["epoch"],
        operators=operators,
        history=points,
        bottleneck=_bottleneck(operators, points, graph),
    )


def with_running(metrics: JobMetrics, driver: JobState | None) -> JobMetrics:
    """With the epoch that runs, where the driver tells."""
    if driver is None or driver.running is None:
        return metrics
    running = driver.running
    return replace(
        metrics,
        running_epoch=running.get("epoch"),
        running_rows=running.get("source_rows"),
        running_s=running.get("duration_s"),
    )


def read_errors(folders: Sequence[tuple[int, Path]], *, limit: int) -> tuple[JobError, ...]:
    """Newest first; `folders` are those of the runs with their numbers, newest first."""
    found: list[JobError] = []
    for number, folder in folders:
        for line in reversed(list(_lines(folder / ERRORS, TAIL_BYTES))):
            found.append(
                JobError(
                    at_us=line["at_us"],
                    message=hide_secrets(line["message"]),
                    traceback=hide_secrets(line.get("traceback", "")),
                    node=line.get("node"),
                    subtask=line.get("subtask"),
                    epoch=line.get("epoch"),
                    run=number,
                    is_recovered=bool(line.get("is_recovered", False)),
                )
            )
            if len(found) == limit:
                return tuple(found)
    return tuple(found)


def lag_s(watermark_us: int | None) -> float | None:
    """How far event time is behind the clock."""
    return None if watermark_us is None else round(time.time() - watermark_us / 1e6, 3)


def point_of(line: Mapping[str, Any]) -> EpochPoint:
    slowest = line.get("slowest")
    duration_s = float(line.get("duration_s", 0.0))
    return EpochPoint(
        epoch=line["epoch"],
        at_us=line["at_us"],
        duration_s=duration_s,
        rows=line.get("source_rows", 0),
        rows_per_s=_rate(line.get("source_rows", 0), duration_s),
        checkpoint_bytes=line.get("checkpoint_bytes", 0),
        checkpoint_s=line.get("checkpoint_s", 0.0),
        commit_s=line.get("commit_s", 0.0),
        state_bytes=line.get("state_bytes", 0),
        backlog=line.get("backlog", 0),
        watermark_lag_s=_lag_at(line),
        slowest=slowest[0] if slowest else None,
    )


def _lag_at(line: Mapping[str, Any]) -> float | None:
    watermark_us = line.get("watermark_us")
    return None if watermark_us is None else round((line["at_us"] - watermark_us) / 1e6, 3)


def _operators(latest: Mapping[str, Any]) -> tuple[OperatorMetrics, ...]:
    duration_s = float(latest.get("duration_s", 0.0))
    subtasks = latest.get("subtasks", {})
    return tuple(
        OperatorMetrics(
            node=node,
            rows_in=numbers["rows_in"],
            rows_out=numbers["rows_out"],
            rows_in_per_s=_rate(numbers["rows_in"], duration_s),
            rows_out_per_s=_rate(numbers["rows_out"], duration_s),
            bytes_in=numbers.get("bytes_in", 0),
            bytes_out=numbers.get("bytes_out", 0),
            busy_share=numbers.get("busy_share", 0.0),
            backlog=numbers.get("backlog", 0),
            state_bytes=numbers.get("state_bytes", 0),
            watermark_us=numbers.get("watermark_us"),
            watermark_lag_s=lag_s(numbers.get("watermark_us")),
            warnings=tuple(hide_secrets(text) for text in numbers.get("warnings", ())),
            counters=numbers.get("counters", {}),
            subtasks=tuple(_subtask(each, duration_s) for each in subtasks.get(node, ())),
        )
        for node, numbers in latest.get("operators", {}).items()
    )


def _subtask(numbers: Sequence[int], duration_s: float) -> SubtaskMetrics:
    subtask, rows_in, rows_out, bytes_in, bytes_out, busy_ns, backlog = numbers
    return SubtaskMetrics(
        subtask=subtask,
        rows_in=rows_in,
        rows_out=rows_out,
        rows_in_per_s=_rate(rows_in, duration_s),
        rows_out_per_s=_rate(rows_out, duration_s),
        bytes_in=bytes_in,
        bytes_out=bytes_out,
        busy_share=round(min(1.0, busy_ns / 1e9 / duration_s), 4) if duration_s else 0.0,
        backlog=backlog,
    )


def _bottleneck(
    operators: Sequence[OperatorMetrics], points: Sequence[EpochPoint], graph: Mapping[str, Any] | None
) -> Bottleneck | None:
    """The busiest node, where it is busy enough to hold the others up."""
    busiest = max(operators, key=lambda each: each.busy_share, default=None)
    if busiest is None or busiest.busy_share < BUSY:
        return None
    since_us = points[-1].at_us if points else 0
    for point in reversed(points):
        if point.slowest != busiest.node:
            break
        since_us = point.at_us
    node: Mapping[str, Any] = next((each for each in (graph or {}).get("nodes", ()) if each["id"] == busiest.node), {})
    kind = "source" if node.get("is_source") else "sink" if node.get("is_sink") else "operator"
    waits = {
        "source": "all behind it wait for its rows",
        "sink": "all before it wait until it has written",
        "operator": "those before it wait for room, and those behind it for rows",
    }
    explanation = (
        f"its busiest subtask worked {busiest.busy_share:.0%} of the last epoch in this {kind}: {waits[kind]}; "
        "make it faster, or give it more subtasks"
    )
    return Bottleneck(
        node=busiest.node, kind=kind, busy_share=busiest.busy_share, since_us=since_us, explanation=explanation
    )


def _rate(rows: int, duration_s: float) -> float:
    return round(rows / duration_s, 1) if duration_s else 0.0


def _document(path: Path) -> Mapping[str, Any] | None:
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) else None


def _lines(path: Path, most_bytes: int) -> Iterator[Mapping[str, Any]]:
    """The lines from the end of a file; one that cannot be read is passed over."""
    for line in _raw_lines(path, most_bytes):
        with suppress(ValueError):
            yield _object(line)


def _object(line: bytes) -> Mapping[str, Any]:
    document = json.loads(line)
    if not isinstance(document, dict):
        raise ValueError("a line is an object")
    return document


def _raw_lines(path: Path, most_bytes: int) -> list[bytes]:
    """Whole lines; one that is being written is not one yet."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - most_bytes))
            data = file.read()
    except OSError:
        return []
    return data.split(b"\n")[1 if size > most_bytes else 0 : -1]
