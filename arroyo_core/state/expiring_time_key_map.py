"""The expiring table: rows with an event time and routing keys, kept while retention lasts.

A subtask holds the rows of its key range. Each checkpoint writes the rows (and deletes) of the epoch;
what older files hold is carried forward by reference, cut to the key range and to what is not expired.
A table declared `generational` holds one row per key: the last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from arroyo_core.api.signals import Watermark
from arroyo_core.proto.state_pb2 import (
    StateFile,
    TableConfig,
    TableSubtaskCheckpointMetadata,
    TableType,
)
from arroyo_core.state.chunks import combine, cut_rows, take_rows
from arroyo_core.state.column_rules import (
    ColumnChanges,
    compare_columns,
    decode_rules,
    derive_refusal,
    describe_columns,
    name_columns,
)
from arroyo_core.state.config import KEY_HASH_COLUMN, OPERATION_COLUMN, decode_expiring_config, decode_schema
from arroyo_core.state.failures import StateValueError, WrongTableKindError
from arroyo_core.state.files import MAX_FILE_BYTES, key_hashes, key_range_parts, sort_by_key_hash
from arroyo_core.state.fitting import fit_rows
from arroyo_core.state.key_views import KeyTimeView, LastKeyValueView
from arroyo_core.state.late_columns import has_columns
from arroyo_core.state.live_files import carry_forward
from arroyo_core.state.messages import CheckpointMessage, OperationCode, RecordBatchData, TableData
from arroyo_core.state.rows import RowFormat, operations
from arroyo_core.state.runs import Run, later
from arroyo_core.state.table import Table, TableOpening
from arroyo_core.state.time_views import ExpiringTimeKeyView, UnreadRows

ExpiringView = ExpiringTimeKeyView | KeyTimeView | LastKeyValueView

#: An epoch's change is sorted and written in parts of about this size.
PART_BYTES = 64 * 2**20


class ExpiringTimeKeyTable(Table[ExpiringView]):
    """One expiring table of one subtask."""

    table_type = TableType.EXPIRING_KEYED_TIME_TABLE
    type_name = "EXPIRING_KEYED_TIME_TABLE"

    def __init__(self, opening: TableOpening) -> None:
        settings = decode_expiring_config(opening.config)
        self.retention_us = settings.retention_us
        self.format = RowFormat(
            table=opening.name,
            schema=decode_schema(settings.schema),
            is_generational=settings.generational,
            unkeyed_hash=opening.access.task_info.key_range.start,
        )
        self.is_shadowing = self.format.is_generational
        self.timestamp_column = self.format.schema.timestamp_column
        super().__init__(opening)
        if opening.written is not None and opening.written.config != opening.config.config:
            changes = _compare(opening.written, opening.config)
            for file in self.carried:
                names = name_columns(changes, file.column_names)
                file.column_names.clear()
                file.column_names.update(names)

    @classmethod
    def file_schema(cls, config: TableConfig) -> pa.Schema:
        settings = decode_expiring_config(config)
        schema = decode_schema(settings.schema)
        return RowFormat(settings.table_name, schema, settings.generational, unkeyed_hash=0).file_schema

    @classmethod
    def derive_mismatch(cls, written: TableConfig, declared: TableConfig) -> str | None:
        """Retention, descriptions and rules may change freely, columns as the rules say.

        Columns that are not known yet are compared later.
        """
        if not has_columns(declared):
            return None
        before, now = decode_expiring_config(written), decode_expiring_config(declared)
        old, new = decode_schema(before.schema), decode_schema(now.schema)
        rules = decode_rules(now)
        must_stay = None if rules is None else {*(new.key_columns or ()), new.timestamp_column}
        columns = [
            [f"{f.name} {f.type}" for f in schema if must_stay is None or f.name in must_stay]
            for schema in (old.schema, new.schema)
        ]
        facts = [
            ("key columns", old.key_columns, new.key_columns),
            ("event-time column", old.timestamp_column, new.timestamp_column),
            ("columns", *(columns if rules is None else map(sorted, columns))),
            ("generational", before.generational, now.generational),
        ]
        for what, found, wanted in facts:
            if found != wanted:
                return f"has {what} {found} in the checkpoint, and is declared with {wanted}"
        if rules is None:
            return None
        return derive_refusal(_compare(written, declared), written=decode_rules(before), declared=rules)

    @classmethod
    def describe_changes(cls, written: TableConfig, declared: TableConfig) -> tuple[str, ...]:
        if not has_columns(declared):
            return ()
        before, now = decode_expiring_config(written), decode_expiring_config(declared)
        return describe_columns(_compare(written, declared), written=decode_rules(before), declared=decode_rules(now))

    @classmethod
    def may_differ(cls, config: TableConfig) -> bool:
        return decode_rules(decode_expiring_config(config)) is not None

    def cutoff_us(self, watermark_us: int | None) -> int | None:
        """Rows before this are past retention; None while there is no watermark or no event time."""
        if watermark_us is None or self.format.schema.timestamp_column is None:
            return None
        return watermark_us - self.retention_us

    def time_view(self, watermark: Watermark | None) -> ExpiringTimeKeyView:
        if self.format.schema.timestamp_column is None:
            raise WrongTableKindError(f"table {self.name!r} has no event-time column: it has no view by time")
        self._refuse_generational("a view by time")
        return ExpiringTimeKeyView(
            table=self.name,
            row_format=self.format,
            unread=self._unread(),
            cutoff_us=self._restore_cutoff(watermark),
            retention_us=self.retention_us,
        )

    def key_time_view(self, watermark: Watermark | None) -> KeyTimeView:
        self._need_keys("a view by key")
        self._refuse_generational("a view of all rows of a key")
        return KeyTimeView(row_format=self.format, runs=self._runs(), cutoff_us=self._restore_cutoff(watermark))

    def last_key_value_view(self) -> LastKeyValueView:
        self._need_keys("a view by key")
        if not self.format.is_generational:
            raise WrongTableKindError(
                f"table {self.name!r} must be declared with generational=True to hold the last row of each key"
            )
        generation = max((file.epoch for file in self.carried), default=0) + 1
        return LastKeyValueView(row_format=self.format, runs=self._runs(), generation=generation, cutoff_us=None)

    def checkpointer(self) -> ExpiringTimeKeyTableCheckpointer:
        return ExpiringTimeKeyTableCheckpointer(self)

    def settle(self, rows: pa.Table, *, is_oldest: bool, cutoff_us: int | None) -> pa.Table:
        """Rows by key hash, without those that later ones make void; deletes stay unless nothing is older."""
        if self.format.is_generational:
            newest = self.format.last_of_each_key(rows, keep_deletes=not is_oldest)
            return self.format.expire(newest, cutoff_us) if is_oldest else newest
        live = sort_by_key_hash(self.format.expire(rows, cutoff_us))
        return self.format.resolve_deletes(live, keep_deletes=not is_oldest)

    def merge_rows(self, files: Sequence[StateFile], parts: Sequence[pa.Table], *, is_oldest: bool) -> pa.Table:
        live = []
        for file, read in zip(files, parts, strict=True):
            fitted = fit_rows(read, self.format.file_schema, file.column_names)
            rows = self.live_rows(file, fitted).replace_schema_metadata(None)
            if self.is_shadowing and file.HasField("live_from_us") and rows.num_rows:
                rows = self._mark_expired(rows, file.live_from_us)
            live.append(rows)
        rows = pa.concat_tables([self.format.empty(), *live])
        return combine(self.settle(rows, is_oldest=is_oldest, cutoff_us=None))

    def read_before_they_go(self, files: Sequence[StateFile]) -> None:
        if isinstance(self.view, ExpiringTimeKeyView):
            self.view.read_files({file.path for file in files})

    def _mark_expired(self, rows: pa.Table, live_from_us: int) -> pa.Table:
        """Expired rows of a last-value table as deletes: they hide older rows of their key, and no more."""
        codes = operations(rows).copy()
        codes[self.format.times_us(rows) < live_from_us] = OperationCode.DELETE_KEY
        index = rows.schema.get_field_index(OPERATION_COLUMN)
        return rows.set_column(index, rows.schema.field(index), pa.array(codes))

    def to_people(self, rows: pa.Table) -> pa.Table:
        """The columns of the user."""
        return pa.Table.from_batches([self.format.decode(rows)])

    def read(self, file: StateFile) -> pa.Table:
        """The live rows of a file; of a generational table also expired ones, which still hide older rows."""
        rows = self.access.read(file, self.access.task_info.key_range)
        return self.live_rows(file, fit_rows(rows, self.format.file_schema, file.column_names))

    def live_rows(self, file: StateFile, rows: pa.Table) -> pa.Table:
        """Those of some rows of a file that `read` gives."""
        if not file.HasField("live_from_us") or self.format.is_generational:
            return rows
        is_live = file.HasField("min_timestamp_us") and file.min_timestamp_us >= file.live_from_us
        return rows if is_live and not file.delete_rows else self.format.expire(rows, file.live_from_us)

    def _runs(self) -> list[Run]:
        """One run for each file, oldest first; rows past retention are still in it, behind `live_from_us`."""
        return self.access.for_each(self.carried, self._run)

    def _run(self, file: StateFile) -> Run:
        # Without deletes a run in memory needs no more than the user's columns.
        columns = None if file.delete_rows else [*self.format.schema.names, KEY_HASH_COLUMN]
        read = self.access.read(file, self.access.task_info.key_range, columns)
        schema = self.format.file_schema
        wanted = schema if columns is None else pa.schema([schema.field(name) for name in columns])
        rows = fit_rows(read, wanted, file.column_names)
        return Run.of_sorted(rows, file.live_from_us if file.HasField("live_from_us") else None)

    def _unread(self) -> list[UnreadRows]:
        """The files as rows to be read when their event times are asked for; all at once if there are deletes."""
        if any(file.delete_rows for file in self.carried):
            tables = [self.format.empty(), *self.access.for_each(self.carried, self.read)]
            rows = self.format.resolve_deletes(pa.concat_tables(tables), keep_deletes=False)
            return [UnreadRows.of_table(self.format, rows)] if rows.num_rows else []
        return [
            UnreadRows(
                first_us=max(file.min_timestamp_us, file.live_from_us)
                if file.HasField("live_from_us")
                else file.min_timestamp_us,
                last_us=file.max_timestamp_us,
                read=partial(self.read, file),
                path=file.path,
            )
            for file in self.carried
        ]

    def _restore_cutoff(self, watermark: Watermark | None) -> int | None:
        return self.cutoff_us(watermark.event_time_us if watermark is not None else None)

    def _need_keys(self, wanted: str) -> None:
        if self.format.schema.key_columns is None:
            raise WrongTableKindError(f"table {self.name!r} has no key columns: it has not {wanted}")

    def _refuse_generational(self, wanted: str) -> None:
        if self.format.is_generational:
            raise WrongTableKindError(
                f"table {self.name!r} is declared with generational=True: it holds the last row of each key, "
                f"and has not {wanted}"
            )


class ExpiringTimeKeyTableCheckpointer:
    """Collects one epoch's change of an expiring table, and writes it."""

    def __init__(self, table: ExpiringTimeKeyTable) -> None:
        self._table = table
        self._rows: list[pa.Table] = []

    def insert_data(self, data: TableData) -> None:
        if not isinstance(data, RecordBatchData):
            raise StateValueError(f"table {self._table.name!r} holds rows; it takes no {type(data).__name__}")
        self._rows.append(data.rows)

    def finish(self, message: CheckpointMessage) -> tuple[TableSubtaskCheckpointMetadata, int]:
        """As `TableCheckpointer.finish`; then drops what is past retention from the view."""
        table, view = self._table, self._table.view
        cutoff_us, expired_before_us = table.cutoff_us(message.watermark_us), None
        if view is not None:
            for data in view.take_changes(cutoff_us):
                self.insert_data(data)
            # Of earlier epochs, rows before it go; those of this epoch do not.
            expired_before_us = view.expired_before_us
        table.carried = carry_forward(
            table.carried,
            key_range=table.access.task_info.key_range,
            cutoff_us=later(cutoff_us, expired_before_us),
            shadows=table.is_shadowing,
        )
        written = self._write(message, cutoff_us)
        table.carried.extend(written)
        if view is not None:
            view.handle_checkpointed(cutoff_us)
        return table.subtask_metadata(), sum(file.size_bytes for file in written)

    def _check_owner(self, rows: pa.Table) -> None:
        """A row that another subtask owns would be restored there, or nowhere: better no checkpoint than that."""
        task, hashes = self._table.access.task_info, key_hashes(rows)
        if len(hashes) and not (int(hashes.min()) in task.key_range and int(hashes.max()) in task.key_range):
            keys = ", ".join(self._table.format.key_columns) or "none"
            raise StateValueError(
                f"table {self._table.name!r} of operator {task.operator_id!r} was given keys in subtask "
                f"{task.task_index} of {task.parallelism} that belong to other subtasks: its key columns ({keys}) "
                "must be those by which the operator's input is routed"
            )

    def _write(self, message: CheckpointMessage, cutoff_us: int | None) -> list[StateFile]:
        """The change in files of disjoint key ranges, each sorted and encoded by itself to need little memory."""
        if not self._rows:
            return []
        table = self._table
        self._check_owner(pa.concat_tables(self._rows))
        is_oldest = not table.carried
        written: list[StateFile] = []
        for part in parts_by_key_hash(self._rows):
            settled = table.settle(part, is_oldest=is_oldest, cutoff_us=cutoff_us)
            # Rows of one key hash, such as all of a table without keys, are one part.
            for rows in cut_rows(settled, MAX_FILE_BYTES):
                file = table.access.write(
                    combine(rows),
                    table_name=table.name,
                    epoch=message.epoch,
                    timestamp_column=table.format.schema.timestamp_column,
                    is_kept_warm=not message.is_last,
                    part=len(written),
                )
                if cutoff_us is not None:
                    file.live_from_us = cutoff_us
                written.append(file)
        return written


def _compare(written: TableConfig, declared: TableConfig) -> ColumnChanges:
    before, now = decode_expiring_config(written), decode_expiring_config(declared)
    return compare_columns(
        decode_schema(before.schema).schema,
        decode_schema(now.schema).schema,
        written=decode_rules(before),
        declared=decode_rules(now),
    )


def parts_by_key_hash(tables: Sequence[pa.Table]) -> Iterator[pa.Table]:
    """The rows in parts of about `PART_BYTES`, each of all rows of a range of key hashes; those of a key in order.

    Tables that are sorted, as runs are, are only sliced: to take rows of several chunks, Arrow copies all of them.
    """
    rows = pa.concat_tables(tables)
    if rows.nbytes <= PART_BYTES:
        yield rows
        return
    max_rows = max(1, rows.num_rows * PART_BYTES // rows.nbytes)
    by_table = [key_hashes(table) for table in tables]
    hashes = np.concatenate(by_table)
    if not all((found[:-1] <= found[1:]).all() for found in by_table):
        order = np.argsort(hashes, kind="stable")
        for part in key_range_parts(hashes[order], max_rows):
            yield take_rows(rows, order[part])
        return
    hashes.sort()
    starts = [0] * len(tables)
    for part in key_range_parts(hashes, max_rows):
        ends = [int(np.searchsorted(found, hashes[part.stop - 1], side="right")) for found in by_table]
        bounds = zip(tables, starts, ends, strict=True)
        yield pa.concat_tables([table.slice(start, end - start) for table, start, end in bounds])
        starts = ends
