"""A table outside that keeps the last value of each key, as two drivers at once find it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from arroyo_core.api import ArrowOperator, CommitToken
from arroyo_core.state import global_table_config


@dataclass(slots=True)
class LastValues:
    """Takes a commit as one transaction. With `is_fenced` it refuses tokens older than the last one it took."""

    is_fenced: bool = True
    values: dict[int, int] = field(default_factory=dict)
    taken: list[CommitToken] = field(default_factory=list)
    refused: list[CommitToken] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def commit(self, token: CommitToken, rows: list[dict[str, int]]) -> None:
        with self._lock:
            if self.is_fenced and self.taken and token < self.taken[-1]:
                self.refused.append(token)
                return
            self.taken.append(token)
            self.values.update({row["key"]: row["n"] for row in rows})


class LastValueSink(ArrowOperator):
    """Commits the rows of an epoch into a table. `on_way` is called first: a driver may be paused on the way there."""

    def __init__(self, table: LastValues, on_way: Callable[[], None]) -> None:
        self._table = table
        self._on_way = on_way

    def name(self) -> str:
        return "lab.last"

    def is_sink(self) -> bool:
        return True

    def is_committing(self) -> bool:
        return True

    def output_schema(self, inputs):
        return inputs[0]

    def routing_keys(self, inputs):
        return [("key",)]

    def tables(self, inputs):
        return global_table_config("rows", "rows to commit", uses_two_phase_commit=True)

    def on_start(self, ctx) -> None:
        self._rows = []

    def process_batch(self, batch, ctx, collector) -> None:
        self._rows += batch.select(["key", "n"]).to_pylist()

    def handle_checkpoint(self, barrier, ctx, collector) -> None:
        ctx.table_manager.insert_committing_data("rows", json.dumps(self._rows).encode())

    def handle_commit(self, epoch, commit_data, ctx) -> None:
        rows = [row for data in commit_data.get("rows", {}).values() for row in json.loads(data)]
        self._on_way()
        self._table.commit(ctx.token, rows)
