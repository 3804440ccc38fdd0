"""`template.sqlite_upsert`: the last row of each key, in a SQLite database, exactly once."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

import pyarrow as pa

from arroyo_core.api import (
    ArrowCollector,
    ArrowOperator,
    ArroyoSchema,
    CheckpointBarrier,
    DisplayableOperator,
    OperatorContext,
)
from arroyo_core.errors import ConfigError, ExternalError
from arroyo_core.state import FencedError, global_table_config

if TYPE_CHECKING:
    from arroyo_core.state import TableConfig

TABLE = "rows"

_TABLES = """
create table if not exists latest (key text primary key, row text);
create table if not exists fence
    (incarnation text, node text, generation int, epoch int, primary key (incarnation, node));
"""
#: Takes a token, unless a newer one was taken before: then it changes nothing.
_TAKE = """
insert into fence values (?, ?, ?, ?)
    on conflict (incarnation, node) do update set generation = excluded.generation, epoch = excluded.epoch
    where (excluded.generation, excluded.epoch) >= (fence.generation, fence.epoch)
"""


class SqliteUpsert(ArrowOperator):
    """Stages rows with the checkpoint, and shows them when it is published."""

    def __init__(self, path: str, key: str) -> None:
        self._path = path
        self._key = key

    def name(self) -> str:
        return "template.sqlite_upsert"

    def display(self) -> DisplayableOperator:
        return DisplayableOperator(self.name(), [("path", self._path), ("key", self._key)])

    def is_sink(self) -> bool:
        return True

    def is_committing(self) -> bool:
        return True

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        (stream,) = inputs
        if self._key not in stream.names:
            raise ConfigError(f"no column {self._key!r}", field="key", value=self._key, allowed=stream.names)
        return stream

    def routing_keys(self, inputs: Sequence[ArroyoSchema]) -> Sequence[tuple[str, ...] | None]:
        # Of two rows of one key the later one counts: one subtask must see both.
        return [(self._key,)]

    def tables(self, inputs: Sequence[ArroyoSchema]) -> dict[str, TableConfig]:
        return global_table_config(TABLE, "rows to commit", uses_two_phase_commit=True)

    def on_start(self, ctx: OperatorContext) -> None:
        self._rows: dict[str, str] = {}

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        keys = [json.dumps(key, default=str) for key in batch.column(self._key).to_pylist()]
        self._rows.update(zip(keys, (json.dumps(row, default=str) for row in batch.to_pylist()), strict=True))

    def handle_checkpoint(self, barrier: CheckpointBarrier, ctx: OperatorContext, collector: ArrowCollector) -> None:
        ctx.table_manager.insert_committing_data(TABLE, json.dumps(self._rows).encode())
        self._rows = {}

    def handle_commit(self, epoch: int, commit_data: Mapping[str, Mapping[int, bytes]], ctx: OperatorContext) -> None:
        """Runs on the driver, once for all subtasks, and again after a crash: all in one transaction."""
        rows = [item for staged in commit_data.get(TABLE, {}).values() for item in json.loads(staged).items()]
        try:
            with closing(sqlite3.connect(self._path)) as database:
                database.executescript(_TABLES)
                with database:
                    self._write(database, rows, ctx)
        except sqlite3.OperationalError as error:
            # Locked by somebody, or no space: a retry may help.
            raise ExternalError(f"cannot write {self._path}: {error}") from error

    def _write(self, database: sqlite3.Connection, rows: list[tuple[str, str]], ctx: OperatorContext) -> None:
        token = ctx.token
        fence = (token.incarnation, ctx.task_info.operator_id, token.generation, token.epoch)
        if not database.execute(_TAKE, fence).rowcount:
            # Its rows are older than those that are there.
            raise FencedError(f"{self._path} has rows of a newer driver than {token}: this one must stop")
        database.executemany("insert or replace into latest values (?, ?)", rows)
        ctx.count("upserted_rows", len(rows))
