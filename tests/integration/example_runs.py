"""An example, made small, run whole or in pieces, and all that it wrote as one multiset."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from arroyo_core import Pipeline
from arroyo_core.api.updating import IS_RETRACT, UPDATING_META
from arroyo_core.pipeline.plan import Node
from arroyo_core.runtime.job import SilentListener
from arroyo_core.runtime.results import EpochResult, JobResult
from arroyo_core.runtime.stop import StopSignal

#: How often each row is there, by where it was written to.
Rows = Counter[tuple[str, str]]
SignedRow = tuple[int, str]

#: More events or numbers than this tell nothing more about being stopped.
MAX_EVENTS = 40_000

#: A source that counts gives its rows in about so many batches, each an epoch if the budget is one row.
BATCHES = 12

#: A paced source gives what has become due whenever so much time has passed.
PACE_S = 0.05


def bound(message: Any, field: str) -> int:
    """End the source early, also one without an end; returns where."""
    if not message.HasField(field) or getattr(message, field) > MAX_EVENTS:
        setattr(message, field, MAX_EVENTS)
    return int(getattr(message, field))


def shrink_counting(message: Any, field: str, *, is_cut: bool) -> None:
    events = bound(message, field)
    message.ClearField("rate")
    if is_cut:
        message.rate = events / BATCHES / PACE_S


def shrink_files(message: Any, *, is_cut: bool) -> None:
    if is_cut:
        message.batch_rows = 1


def print_all(message: Any, *, is_cut: bool) -> None:
    message.limit = 2**31
    message.max_cell_width = 0


#: How the config of a source is made small, and for `is_cut` to give few rows at a time; and a sink shows all its rows.
ADAPT: Mapping[str, Callable[..., None]] = {
    "nexmark.source": lambda message, is_cut: shrink_counting(message, "events", is_cut=is_cut),
    "impulse.source": lambda message, is_cut: shrink_counting(message, "count", is_cut=is_cut),
    "filesystem.source": shrink_files,
    "std.stdout": print_all,
}

#: What is forgotten cannot be compared.
STAND_INS = {"std.blackhole": "std.stdout"}


def load_small(example: Path, *, is_cut: bool) -> Pipeline:
    """The example with few events; with `is_cut`, in many batches. Operators without an adaptation stay as they are."""
    pipeline = Pipeline.from_yaml(example)

    def adapted(node: Node) -> Node:
        operator = STAND_INS.get(node.operator, node.operator)
        if operator not in ADAPT:
            return node
        config_type = pipeline.plugins.registry.constructors[operator].config_type
        message = config_type.FromString(node.config if operator == node.operator else b"")
        ADAPT[operator](message, is_cut=is_cut)
        return dataclasses.replace(node, operator=operator, config=message.SerializeToString())

    nodes = {name: adapted(node) for name, node in pipeline.plan.nodes.items()}
    return dataclasses.replace(pipeline, plan=dataclasses.replace(pipeline.plan, nodes=nodes))


class StopAfterEpoch(SilentListener):
    """Asks for a stop when the first epoch of the run is done."""

    def __init__(self, stop: StopSignal) -> None:
        self._stop = stop

    def on_epoch(self, result: EpochResult, job: JobResult) -> None:
        self._stop.request()


def run_whole(example: Path, spark: Any, state: Path) -> JobResult:
    pipeline = load_small(example, is_cut=False)
    return with_checkpoints(pipeline, state, rows=None).run(spark)


def run_in_pieces(example: Path, spark: Any, state: Path) -> list[JobResult]:
    """Two runs that are stopped when their first epoch is committed, and one to the end.

    A run that finds the job finished does nothing: with very little data the second one may have reached its end.
    """
    results = []
    for rows in (1, 1, None):
        # Made again each time, as another process would.
        pipeline = with_checkpoints(load_small(example, is_cut=True), state, rows=rows)
        stop = StopSignal()
        listener = StopAfterEpoch(stop) if rows else SilentListener()
        results.append(pipeline.run(spark, listener=listener, stop=stop))
    return results


def with_checkpoints(pipeline: Pipeline, state: Path, *, rows: int | None) -> Pipeline:
    checkpoint = dataclasses.replace(pipeline.plan.checkpoint, url=state.as_uri(), rows=rows)
    return dataclasses.replace(pipeline, plan=dataclasses.replace(pipeline.plan, checkpoint=checkpoint))


def written_rows(folder: Path) -> Rows:
    """Every row of every committed file below the folder, with the folder it is in."""
    rows: Rows = Counter()
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(("_", ".")) for part in name.parts):
            for count, row in file_rows(path):
                rows[(str(name.parent), row)] += count
    return rows


def file_rows(path: Path) -> list[SignedRow]:
    match path.suffix:
        case ".parquet":
            return [signed(row) for row in pq.ParquetFile(path).read().to_pylist()]
        case ".arrow":
            return [signed(row) for row in ipc.open_file(path).read_all().to_pylist()]
        case ".json" | ".jsonl":
            return [row for line in path.read_text().splitlines() for row in json_rows(json.loads(line))]
        case ".csv":
            return [(1, line) for line in path.read_text().splitlines()[1:]]
    raise AssertionError(f"no way to read {path} is known here")


def json_rows(line: dict[str, Any]) -> list[SignedRow]:
    """The row of a line, or the rows that a change in Debezium's form takes back and adds."""
    if {"error", "text"} <= line.keys():
        # A bad line also tells in which run it was met, and when.
        varying = ("incarnation", "epoch", "subtask", "time")
        return [signed({name: value for name, value in line.items() if name not in varying})]
    if line.keys() != {"before", "after", "op"}:
        return [signed(line)]
    sides = [(-1, line["before"]), (1, line["after"])]
    return [(sign, signed(row)[1]) for sign, row in sides if row is not None]


def signed(row: dict[str, Any]) -> SignedRow:
    """A row that takes another one back counts against it: how often a result changed depends on the epochs."""
    meta = row.pop(UPDATING_META, None) or {}
    return (-1 if meta.get(IS_RETRACT) else 1), repr(sorted(row.items()))


def printed_rows(text: str) -> Rows:
    """Rows that `std.stdout` printed, as JSON, CSV or a table whose header comes with each epoch."""
    lines = [line for line in text.splitlines() if line.strip()]
    is_rule = [set(line) <= {"-", "+"} for line in lines]
    heads = {index - 1 for index, rule in enumerate(is_rule) if rule}
    rows: Rows = Counter()
    for index, line in enumerate(lines):
        if not is_rule[index] and index not in heads:
            count, row = printed_row(line)
            rows[("stdout", row)] += count
    return rows


def printed_row(line: str) -> SignedRow:
    if line.startswith("{"):
        return signed(json.loads(line))
    cells = [cell.strip() for cell in line.split(" | ")]
    metas = [cell for cell in cells if cell.startswith("{") and f'"{IS_RETRACT}"' in cell]
    is_retract = any(json.loads(meta)[IS_RETRACT] for meta in metas)
    return (-1 if is_retract else 1), " | ".join(cell for cell in cells if cell not in metas)


def difference(expected: Rows, found: Rows) -> dict[tuple[str, str], int]:
    """What there is too much of, and with a minus sign what is missing."""
    return {key: found[key] - expected[key] for key in {*expected, *found} if found[key] != expected[key]}
