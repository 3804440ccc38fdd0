"""`iceberg.sink`: rows in the files of a table, which one commit adds with the epoch they belong to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from arroyo_core.api import (
    ArrowCollector,
    ArrowOperator,
    ArroyoSchema,
    CheckpointBarrier,
    Dataset,
    DisplayableOperator,
    OperatorContext,
    SignalMessage,
)
from arroyo_core.api.updating import is_updating, without_updating
from arroyo_core.errors import ConfigError
from arroyo_core.state import global_table_config
from arroyo_iceberg.changes import Changes
from arroyo_iceberg.commit import Commit
from arroyo_iceberg.merging import keys_of_table
from arroyo_iceberg.opening import open_table, table_schema
from arroyo_iceberg.partitions import check_partition_fields
from arroyo_iceberg.schemas import check_names
from arroyo_iceberg.sink_settings import Missing, Mode, SinkSettings
from arroyo_iceberg.staging import FileNames, Staged, encode_keys, encode_staged
from arroyo_iceberg.writers import OpenFiles

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from arroyo_core.state import TableConfig

TABLE = "files"
_CREATED = "created"


class IcebergSink(ArrowOperator):
    """Writes every row exactly once: staged while the epoch runs, added to the table when it is committed."""

    def __init__(self, settings: SinkSettings) -> None:
        self._settings = settings
        self._table: Table | None = None
        self._files: OpenFiles | None = None
        self._changes: Changes | None = None

    def name(self) -> str:
        return "iceberg.sink"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        (stream,) = inputs
        settings = self._settings
        self._check_updating(stream)
        if settings.deleted_column:
            self._check_deleted_column(stream)
        rows = self._rows(stream)
        if is_updating(stream):
            _check_comparable(rows)
        if not rows.names:
            raise ConfigError("a table must have at least one column")
        check_names(settings.keys, rows, field="keys")
        for index, name in enumerate(settings.keys):
            if pa.types.is_nested(rows.field(name).type):
                raise ConfigError(f"column {name!r} is nested, and cannot be a key", field=f"keys[{index}]", value=name)
        check_partition_fields(settings.partition_by, table_schema(rows))
        return stream

    def is_sink(self) -> bool:
        return True

    def is_committing(self) -> bool:
        return True

    def guarantee_reason(self) -> str:
        return "files and the epoch's marker are one commit to the catalog"

    def routing_keys(self, inputs: Sequence[ArroyoSchema]) -> Sequence[tuple[str, ...] | None]:
        # The changes of a key in their order, and so in one subtask.
        return [self._settings.keys or None]

    def tables(self, inputs: Sequence[ArroyoSchema]) -> dict[str, TableConfig]:
        return dict(global_table_config(TABLE, "files to commit", uses_two_phase_commit=True))

    def state_settings(self, inputs: Sequence[ArroyoSchema]) -> Mapping[str, str]:
        # Files that wait for their commit are there, and so is the marker.
        settings = self._settings
        return {"table": str(settings.table), "branch": settings.branch}

    def display(self) -> DisplayableOperator:
        settings = self._settings
        fields = [
            ("catalog", settings.catalog.shown),
            ("table", str(settings.table)),
            ("mode", str(settings.mode)),
        ]
        if settings.branch != "main":
            fields.append(("branch", settings.branch))
        if settings.keys:
            fields.append(("keys", ", ".join(settings.keys)))
        if settings.partition_by:
            fields.append(("partition_by", ", ".join(map(str, settings.partition_by))))
        return DisplayableOperator(self.name(), fields)

    def datasets(self) -> Sequence[Dataset]:
        return [self._settings.catalog.dataset(self._settings.table)]

    def lives_on(self) -> bool:
        return True

    def on_start(self, ctx: OperatorContext) -> None:
        self._table = self._files = self._changes = None
        if ctx.task_info.task_index or self._settings.if_missing is not Missing.CREATE:
            return
        view = ctx.table_manager.get_global_keyed_state(TABLE)
        if not view.get(_CREATED):
            # Also where no row ever comes: whoever reads the table finds it.
            self._open(ctx)
            view.insert(_CREATED, True)

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        if not batch.num_rows:
            return
        if self._settings.mode is Mode.MERGE:
            if self._changes is None:
                rows = self._rows(ctx.input_schemas[0])
                self._changes = Changes(rows, self._settings.keys, deleted_column=self._settings.deleted_column)
            self._changes.add(batch)
        else:
            self._open_files(ctx).write(batch)

    def handle_checkpoint(self, barrier: CheckpointBarrier, ctx: OperatorContext, collector: ArrowCollector) -> None:
        deleted = b""
        if self._changes is not None:
            rows, gone = self._changes.result()
            if gone.num_rows:
                deleted = encode_keys(keys_of_table(self._open(ctx), gone, self._settings.keys))
            if rows.num_rows:
                self._open_files(ctx).write(rows)
        files = self._files.close() if self._files is not None else []
        if not files and not deleted:
            ctx.table_manager.insert_committing_data(TABLE, b"")
        else:
            table_id = str(self._open(ctx).metadata.table_uuid)
            view = ctx.table_manager.get_global_keyed_state(TABLE)
            # By incarnation: what a fork has of the other job does not count, its marker is another one.
            has_earlier = view.get(ctx.token.incarnation) == table_id
            staged = Staged(table_id, tuple(files), deleted, has_earlier, ctx.token.generation)
            ctx.table_manager.insert_committing_data(TABLE, encode_staged(staged))
            if not has_earlier:
                view.insert(ctx.token.incarnation, table_id)
        # The next epoch looks at the table again: others may have changed it.
        self._table = self._files = self._changes = None

    def handle_commit(self, epoch: int, commit_data: Mapping[str, Mapping[int, bytes]], ctx: OperatorContext) -> None:
        Commit(self._settings, ctx, commit_data.get(TABLE, {})).run()

    def on_close(
        self, final_message: SignalMessage | None, ctx: OperatorContext, collector: ArrowCollector
    ) -> SignalMessage | None:
        # After END_OF_DATA and STOP one more checkpoint follows, which ends the files.
        if final_message is None and self._files is not None:
            self._files.abort()
        return final_message

    def _open(self, ctx: OperatorContext) -> Table:
        if self._table is None:
            self._table = open_table(self._settings, self._rows(ctx.input_schemas[0]))
        return self._table

    def _open_files(self, ctx: OperatorContext) -> OpenFiles:
        """The files of the epoch."""
        if self._files is None:
            names, epoch = FileNames(ctx.token.incarnation, ctx.task_info), ctx.epoch
            self._files = OpenFiles(
                self._open(ctx),
                lambda: names.staged(epoch),
                max_file_bytes=self._settings.max_file_bytes,
                max_partitions=self._settings.max_partitions,
            )
        return self._files

    def _rows(self, stream: ArroyoSchema) -> pa.Schema:
        """The columns that are written."""
        rows = without_updating(stream).schema
        return pa.schema([field for field in rows if field.name != self._settings.deleted_column])

    def _check_updating(self, stream: ArroyoSchema) -> None:
        if is_updating(stream) and self._settings.mode is not Mode.MERGE:
            raise ConfigError(
                "the input is updating: it takes back rows, which only mode: merge does in a table. Name its keys, or "
                "put std.upsert in front, with mode: merge and deleted_column",
                field="mode",
                value=str(self._settings.mode),
                allowed=[Mode.MERGE],
            )

    def _check_deleted_column(self, stream: ArroyoSchema) -> None:
        name = self._settings.deleted_column
        if name not in stream.names:
            raise ConfigError(f"no column {name!r}", field="deleted_column", value=name, allowed=stream.names)
        found = stream.schema.field(name).type
        if not pa.types.is_boolean(found):
            raise ConfigError(f"column {name!r} is {found}, not bool", field="deleted_column", value=name)
        if is_updating(stream):
            raise ConfigError("an updating input needs no deleted_column", field="deleted_column", value=name)


def _check_comparable(rows: pa.Schema) -> None:
    """What is taken back is compared with what was added; raises `ConfigError` for types that cannot be."""
    for field in rows:
        if pa.types.is_nested(field.type):
            raise ConfigError(
                f"the input is updating, and column {field.name!r} is {field.type}: rows with nested values cannot be "
                "compared here. Put std.upsert in front, with mode: merge and deleted_column"
            )
