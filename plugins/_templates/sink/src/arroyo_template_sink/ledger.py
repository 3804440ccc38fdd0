"""`template.ledger`: adds rows to a table of a SQLite database, each exactly once."""

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
from arroyo_core.errors import ExternalError
from arroyo_core.state import global_table_config

if TYPE_CHECKING:
    from arroyo_core.state import TableConfig

#: The state table whose bytes `handle_commit` is given.
STAGED = "staged"
#: The table of the database that knows which epochs are there.
EPOCHS = "committed_epochs"
#: How long another writer may hold the database.
TIMEOUT_S = 10.0


class Ledger(ArrowOperator):
    """Stages rows with the checkpoint, and shows them when it is published.

    A task may run twice, and a driver may die at any moment: nothing is visible before `handle_commit`, and the
    same commit twice is the same as once.
    """

    def __init__(self, path: str, table: str) -> None:
        self._path = path
        self._table = table

    def name(self) -> str:
        return "template.ledger"

    def display(self) -> DisplayableOperator:
        return DisplayableOperator(self.name(), [("path", self._path), ("table", self._table)])

    def is_sink(self) -> bool:
        return True

    def is_committing(self) -> bool:
        return True

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        (stream,) = inputs
        return stream

    def tables(self, inputs: Sequence[ArroyoSchema]) -> dict[str, TableConfig]:
        return global_table_config(STAGED, "rows to commit", uses_two_phase_commit=True)

    def on_start(self, ctx: OperatorContext) -> None:
        self._lines: list[str] = []

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        self._lines += [json.dumps(row, default=str) for row in batch.to_pylist()]

    def handle_checkpoint(self, barrier: CheckpointBarrier, ctx: OperatorContext, collector: ArrowCollector) -> None:
        """The bytes are part of the checkpoint, and go through the driver: for gigabytes stage files instead."""
        ctx.table_manager.insert_committing_data(STAGED, json.dumps(self._lines).encode())
        self._lines = []

    def handle_commit(self, epoch: int, commit_data: Mapping[str, Mapping[int, bytes]], ctx: OperatorContext) -> None:
        """Runs on the driver, once for all subtasks, and again after a crash."""
        lines = [line for staged in commit_data.get(STAGED, {}).values() for line in json.loads(staged)]
        try:
            with closing(sqlite3.connect(self._path, timeout=TIMEOUT_S)) as database:
                self._create(database)
                with database:
                    self._add(database, lines, ctx)
        except sqlite3.OperationalError as error:
            # Locked by somebody, or no space. The job goes on from its checkpoint after a while, and commits again.
            raise ExternalError(f"cannot write {self._path}: {error}") from error

    def _create(self, database: sqlite3.Connection) -> None:
        database.executescript(
            f"""
            create table if not exists {self._table} (row text);
            create table if not exists {EPOCHS}
                (incarnation text, node text, epoch int, primary key (incarnation, node, epoch));
            """
        )

    def _add(self, database: sqlite3.Connection, lines: Sequence[str], ctx: OperatorContext) -> None:
        """The rows and the note are one transaction: a second commit of the epoch finds the note, and adds nothing.

        The number of an epoch is not enough: a job whose state was removed counts from 1 again, and so does another job
        that writes here. Both are another incarnation. Two nodes of one pipeline may write here, too.
        """
        note = (ctx.token.incarnation, ctx.task_info.operator_id, ctx.token.epoch)
        if database.execute(f"insert or ignore into {EPOCHS} values (?, ?, ?)", note).rowcount:
            database.executemany(f"insert into {self._table} values (?)", [(line,) for line in lines])
            ctx.count("added_rows", len(lines))
