"""The distribution acme-counters: a type of tables, made of public names only, and an operator that uses it.

The table has numbers by key, to which others are added. A checkpoint writes what was added since the last one, and a
merge of files adds it up.
"""

from __future__ import annotations

import pyarrow as pa
from google.protobuf import struct_pb2

from arroyo_core.api import ArrowOperator, ArroyoSchema, ConstructedOperator, OperatorConstructor
from arroyo_core.api.hashing import hash_columns
from arroyo_core.plugin import hookimpl
from arroyo_core.state import KEY_HASH_COLUMN, OPERATION_COLUMN, RecordBatchData, Table, TableConfig, TableManager

SCHEMA = pa.schema(
    [
        pa.field("key", pa.int64()),
        pa.field("count", pa.int64()),
        pa.field(KEY_HASH_COLUMN, pa.uint64(), nullable=False),
        pa.field(OPERATION_COLUMN, pa.uint8(), nullable=False),
    ]
)


def counters_config(unit: str = "rows") -> TableConfig:
    return CountersTable.make_config(unit.encode())


def get_counters(manager: TableManager, name: str) -> CountersView:
    """What an operator calls in `on_start`, with `ctx.table_manager`."""
    return manager.get_view(name, CountersTable, CountersView, CountersTable.counters)


class CountersView:
    def __init__(self, stored: pa.Table) -> None:
        self.counts: dict[int, int] = {}
        self._added: dict[int, int] = {}
        for row in stored.to_pylist():
            self.counts[row["key"]] = self.counts.get(row["key"], 0) + row["count"]

    def add(self, key: int, count: int = 1) -> None:
        for counts in (self.counts, self._added):
            counts[key] = counts.get(key, 0) + count

    def take_changes(self) -> RecordBatchData:
        added, self._added = self._added, {}
        return RecordBatchData(make_rows(pa.array(added.keys(), pa.int64()), pa.array(added.values(), pa.int64())))


class CountersCheckpointer:
    def __init__(self, table: CountersTable) -> None:
        self._table = table
        self._rows: list[pa.Table] = []

    def insert_data(self, data):
        self._rows.append(data.rows)

    def finish(self, message):
        table, written = self._table, []
        if table.view is not None:
            self.insert_data(table.view.take_changes())
        rows = pa.concat_tables([SCHEMA.empty_table(), *self._rows])
        if rows.num_rows:
            written.append(table.access.write(rows, table_name=table.name, epoch=message.epoch))
        table.carried.extend(written)
        return table.subtask_metadata(), sum(file.size_bytes for file in written)


class CountersTable(Table[CountersView]):
    table_type = 1001
    type_name = "COUNTERS"

    @classmethod
    def file_schema(cls, config):
        return SCHEMA

    @classmethod
    def derive_mismatch(cls, written, declared):
        if written.config == declared.config:
            return None
        return (
            f"counts {written.config.decode()} in the checkpoint, and is declared to count {declared.config.decode()}"
        )

    def counters(self) -> CountersView:
        parts = [self.access.read(file, self.access.task_info.key_range) for file in self.carried]
        return CountersView(pa.concat_tables([SCHEMA.empty_table(), *_plain(parts)]))

    def checkpointer(self):
        return CountersCheckpointer(self)

    def merge_rows(self, files, parts, *, is_oldest):
        added = pa.concat_tables([SCHEMA.empty_table(), *_plain(parts)]).group_by("key").aggregate([("count", "sum")])
        return make_rows(added["key"].combine_chunks(), added["count_sum"].combine_chunks())

    def to_people(self, rows):
        return rows.select(["key", "count"]).sort_by("key")


def make_rows(keys: pa.Array, counts: pa.Array) -> pa.Table:
    """As files hold them: sorted by the hash of the key."""
    hashes = pa.array(hash_columns([keys]), pa.uint64())
    inserts = pa.array([0] * len(keys), pa.uint8())
    return pa.Table.from_arrays([keys, counts, hashes, inserts], schema=SCHEMA).sort_by(KEY_HASH_COLUMN)


def _plain(parts):
    return [part.select(SCHEMA.names).replace_schema_metadata(None) for part in parts]


class Tally(ArrowOperator):
    """Numbers the rows of each remainder of `counter`, by three: 1, 2, and so on."""

    def name(self):
        return "acme.tally"

    def routing_keys(self, inputs):
        return [("subtask_index",)]

    def output_schema(self, inputs):
        return ArroyoSchema(pa.schema([("remainder", pa.int64()), ("number", pa.int64())]))

    def tables(self, inputs):
        return {"seen": counters_config()}

    def on_start(self, ctx):
        self._seen = get_counters(ctx.table_manager, "seen")

    def process_batch(self, batch, ctx, collector):
        rows = []
        for counter in batch.column("counter").to_pylist():
            self._seen.add(counter % 3)
            rows.append({"remainder": counter % 3, "number": self._seen.counts[counter % 3]})
        collector.collect(pa.RecordBatch.from_pylist(rows, schema=ctx.output_schema.schema))


class TallyConstructor(OperatorConstructor):
    config_type = struct_pb2.Struct

    def with_config(self, config, registry):
        return ConstructedOperator.from_operator(Tally())


@hookimpl
def arroyo_register(registry):
    registry.add("acme.tally", TallyConstructor())


@hookimpl
def arroyo_table_type():
    return [CountersTable]
