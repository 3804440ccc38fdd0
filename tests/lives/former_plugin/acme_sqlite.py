import json
import sqlite3
from contextlib import closing

from google.protobuf import struct_pb2

from arroyo_core import ArrowOperator, ConstructedOperator, OperatorConstructor
from arroyo_core.errors import ConfigError, ExternalError
from arroyo_core.plugin import hookimpl
from arroyo_core.state import global_table_config


class SqliteSink(ArrowOperator):
    def __init__(self, path):
        self._path = path

    def name(self):
        return "acme.sqlite"

    def is_sink(self):
        return True

    def is_committing(self):
        return True

    def output_schema(self, inputs):
        return inputs[0]

    def tables(self):
        return global_table_config("staged", "rows to commit", uses_two_phase_commit=True)

    def on_start(self, ctx):
        self._lines = []

    def process_batch(self, batch, ctx, collector):
        self._lines += [json.dumps(row, default=str) for row in batch.to_pylist()]

    def handle_checkpoint(self, barrier, ctx, collector):
        ctx.table_manager.insert_committing_data("staged", "\n".join(self._lines).encode())
        self._lines = []

    def handle_commit(self, epoch, commit_data, ctx):
        lines = [line for staged in commit_data.get("staged", {}).values() for line in staged.decode().splitlines()]
        try:
            with closing(sqlite3.connect(self._path)) as database, database:
                self.write(database, lines, ctx)
        except sqlite3.OperationalError as error:
            raise ExternalError(f"cannot write {self._path}: {error}") from error

    def write(self, database, lines, ctx):
        database.execute("create table if not exists events (row text)")
        database.execute(
            "create table if not exists committed "
            "(incarnation text, node text, epoch int, primary key (incarnation, node, epoch))"
        )
        note = (ctx.token.incarnation, ctx.task_info.operator_id, ctx.token.epoch)
        if database.execute("insert or ignore into committed values (?, ?, ?)", note).rowcount:
            database.executemany("insert into events values (?)", [(line,) for line in lines])
            ctx.count("inserted_rows", len(lines))


class SqliteSinkConstructor(OperatorConstructor):
    config_type = struct_pb2.Struct
    inputs = (1, 1)
    is_sink = True
    sink = SqliteSink

    def with_config(self, config, registry):
        unknown = sorted(set(config) - {"path"})
        if unknown:
            raise ConfigError(f"there is no field {unknown[0]!r}", field=unknown[0], allowed=["path"])
        if "path" not in config or not isinstance(config["path"], str):
            raise ConfigError("path is required, a text", field="path")
        return ConstructedOperator.from_operator(self.sink(config["path"]))


@hookimpl
def arroyo_register(registry):
    registry.add("acme.sqlite", SqliteSinkConstructor())
