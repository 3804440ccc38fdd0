"""`chaos.latest`: a sink in which the last writer wins, the kind that a driver which wakes up late can harm.

It keeps one row for each key and stream, the last one that was committed, in SQLite. A commit with an older token than
the last one is refused, as docs/write-a-sink.md asks for.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from google.protobuf import json_format, struct_pb2

from arroyo_core.api import (
    ArrowCollector,
    ArrowOperator,
    ArroyoSchema,
    CheckpointBarrier,
    ConstructedOperator,
    OperatorConstructor,
    OperatorContext,
    Registry,
)
from arroyo_core.errors import ExternalError
from arroyo_core.state import global_table_config

if TYPE_CHECKING:
    from arroyo_core.proto.state_pb2 import TableConfig

TABLE = "staged"
#: A driver that is paused inside its transaction keeps the others out.
WAIT_S = 5.0

SCHEMA = """
    create table if not exists latest (
        key integer, stream integer, moment integer, count integer, total integer, greatest integer,
        primary key (key, stream)
    );
    create table if not exists fence (incarnation text primary key, generation integer, epoch integer);
"""
FENCE = """
    insert into fence values (?, ?, ?) on conflict (incarnation) do update
    set generation = excluded.generation, epoch = excluded.epoch
    where (excluded.generation, excluded.epoch) >= (fence.generation, fence.epoch)
"""


class Latest(ArrowOperator):
    """Takes the windows of `chaos.tally`. With `marker`, the first to commit `pause_epoch` stops itself before."""

    def __init__(self, path: str, marker: str | None, pause_epoch: int) -> None:
        self._path = path
        self._marker = marker
        self._pause_epoch = pause_epoch
        self._rows: dict[tuple[int, int], dict[str, Any]] = {}

    def name(self) -> str:
        return "chaos.latest"

    def is_sink(self) -> bool:
        return True

    def is_committing(self) -> bool:
        return True

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        return inputs[0]

    def routing_keys(self, inputs: Sequence[ArroyoSchema]) -> Sequence[tuple[str, ...] | None]:
        return [("key",)]

    def tables(self, inputs: Sequence[ArroyoSchema]) -> dict[str, TableConfig]:
        return global_table_config(TABLE, "the last windows of the epoch", uses_two_phase_commit=True)

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        times = batch.column("moment").cast(pa.int64())
        for row in batch.set_column(batch.schema.names.index("moment"), "moment", times).to_pylist():
            key = row["key"], row["stream"]
            # Windows that fire together come in no order.
            if key not in self._rows or self._rows[key]["moment"] < row["moment"]:
                self._rows[key] = row

    def handle_checkpoint(self, barrier: CheckpointBarrier, ctx: OperatorContext, collector: ArrowCollector) -> None:
        ctx.table_manager.insert_committing_data(TABLE, json.dumps(list(self._rows.values())).encode())
        self._rows = {}

    def handle_commit(self, epoch: int, commit_data: Mapping[str, Mapping[int, bytes]], ctx: OperatorContext) -> None:
        rows = [row for data in commit_data.get(TABLE, {}).values() for row in json.loads(data)]
        self._pause(epoch)
        try:
            with closing(sqlite3.connect(self._path, timeout=WAIT_S)) as database:
                database.executescript(SCHEMA)
                with database:
                    self._write(database, rows, ctx)
        except sqlite3.OperationalError as error:
            raise ExternalError(f"cannot write {self._path}: {error}") from error

    def _write(self, database: sqlite3.Connection, rows: Sequence[Mapping[str, Any]], ctx: OperatorContext) -> None:
        token = ctx.token
        if not database.execute(FENCE, (token.incarnation, token.generation, token.epoch)).rowcount:
            ctx.warn(f"epoch {token.epoch} of generation {token.generation} came too late")
            return
        database.executemany(
            "insert or replace into latest values (:key, :stream, :moment, :count, :total, :greatest)", rows
        )

    def _pause(self, epoch: int) -> None:
        """The generation has been checked; nobody but the store can refuse what comes when this process goes on."""
        if self._marker is None or epoch != self._pause_epoch:
            return
        try:
            os.close(os.open(self._marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        # To this thread, which stops before the call returns: nothing is written until the process goes on. A signal to
        # the process may reach another thread first.
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


class LatestConstructor(OperatorConstructor[struct_pb2.Struct]):
    """Config: `path` of the database; `marker` and `pause_epoch` for a pause."""

    config_type = struct_pb2.Struct

    def with_config(self, config: struct_pb2.Struct, registry: Registry) -> ConstructedOperator:
        given: dict[str, Any] = json_format.MessageToDict(config)
        latest = Latest(given["path"], given.get("marker"), int(given.get("pause_epoch", 0)))
        return ConstructedOperator.from_operator(latest)
