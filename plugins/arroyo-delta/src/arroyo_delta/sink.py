"""`delta.sink`: rows that become part of a table only with the epoch they belong to."""

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
from arroyo_core.errors import ConfigError, DataError
from arroyo_core.state import global_table_config
from arroyo_delta.changes import LastChanges
from arroyo_delta.commit import Commit
from arroyo_delta.open_files import OpenFiles
from arroyo_delta.shape import TableShape, check_partitions, check_writable, new_shape, shape_of
from arroyo_delta.sink_settings import Mode, SinkSettings
from arroyo_delta.staging import StagedFile, decode_epochs, encode_epoch, node_folder
from arroyo_delta.types import cast_batch, stored_schema

if TYPE_CHECKING:
    from arroyo_core.state import TableConfig

TABLE = "files"


class DeltaSink(ArrowOperator):
    """Writes every row exactly once: into files while the epoch runs, into the table's log when it is committed."""

    def __init__(self, settings: SinkSettings) -> None:
        self._settings = settings
        self._shape: TableShape | None = None
        self._schema: pa.Schema | None = None
        self._files: OpenFiles | None = None
        self._changes: LastChanges | None = None

    def name(self) -> str:
        return "delta.sink"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        stream, settings = inputs[0], self._settings
        self._check_deleted_column(stream)
        rows = self._rows(stream)
        if is_updating(stream) and settings.mode is not Mode.MERGE:
            raise ConfigError(
                f"the input is updating: it takes back rows, and mode: {settings.mode} only adds them. Choose "
                "mode: merge with the keys of the rows",
                field="mode",
                value=str(settings.mode),
                allowed=[Mode.MERGE],
            )
        stored = stored_schema(rows)
        check_partitions(stored, settings.partition_by)
        self._check_keys(stored)
        return stream

    def is_sink(self) -> bool:
        return True

    def is_committing(self) -> bool:
        return True

    def routing_keys(self, inputs: Sequence[ArroyoSchema]) -> list[tuple[str, ...] | None]:
        # The changes of a row in their order, in one subtask.
        return [self._settings.keys or None]

    def tables(self, inputs: Sequence[ArroyoSchema]) -> dict[str, TableConfig]:
        return dict(global_table_config(TABLE, "files to commit", uses_two_phase_commit=True))

    def state_settings(self, inputs: Sequence[ArroyoSchema]) -> Mapping[str, str]:
        # Files that wait for their commit are there, and are committed as they were staged.
        settings = self._settings
        return {"table": settings.location.place, "mode": str(settings.mode), "keys": ", ".join(settings.keys)}

    def display(self) -> DisplayableOperator:
        settings = self._settings
        fields = [("table", settings.location.place), ("mode", str(settings.mode))]
        fields += [("keys", ", ".join(settings.keys))] if settings.keys else []
        fields += [("partition_by", ", ".join(settings.partition_by))] if settings.partition_by else []
        return DisplayableOperator(self.name(), fields)

    def datasets(self) -> Sequence[Dataset]:
        return [Dataset.at(self._settings.location.url)]

    def lives_on(self) -> bool:
        return True

    def on_start(self, ctx: OperatorContext) -> None:
        if ctx.task_info.task_index == 0:
            # What does not fit shall not be found out with the first row.
            self._prepare(ctx)

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        if not batch.num_rows:
            return
        schema, shape = self._prepare(ctx)
        rows = cast_batch(batch, schema)
        if self._settings.mode is Mode.MERGE:
            if self._changes is None:
                self._changes = LastChanges(schema, self._settings.keys, deleted_column=self._settings.deleted_column)
            self._changes.add(rows, batch)
            return
        if self._files is None:
            self._files = OpenFiles(
                self._settings.location.files(),
                self._folder(ctx),
                schema,
                shape.partition_by,
                task_index=ctx.task_info.task_index,
                max_file_bytes=self._settings.max_file_bytes,
                max_partitions=self._settings.max_partitions,
            )
        try:
            self._files.write(rows)
        except BaseException:
            self._abort()
            raise

    def handle_checkpoint(self, barrier: CheckpointBarrier, ctx: OperatorContext, collector: ArrowCollector) -> None:
        staged: list[StagedFile] = []
        if self._files is not None:
            staged = self._files.close()
        elif self._changes is not None:
            files = self._settings.location.files()
            staged = self._changes.store(files, self._folder(ctx), task_index=ctx.task_info.task_index)
        self._files = self._changes = None
        data = b""
        if staged:
            schema, shape = self._prepare(ctx)
            data = encode_epoch(schema, shape.partition_by, staged)
        # The table is looked at again in the next epoch: others may add columns.
        self._shape = self._schema = None
        ctx.table_manager.insert_committing_data(TABLE, data)

    def handle_commit(self, epoch: int, commit_data: Mapping[str, Mapping[int, bytes]], ctx: OperatorContext) -> None:
        folder = node_folder(ctx.task_info, ctx.table_manager.state_id)
        epochs = decode_epochs(commit_data.get(TABLE, {}), folder)
        Commit(settings=self._settings, ctx=ctx, epochs=epochs).run()

    def on_close(
        self, final_message: SignalMessage | None, ctx: OperatorContext, collector: ArrowCollector
    ) -> SignalMessage | None:
        # After END_OF_DATA and STOP one more checkpoint follows, which ends the files.
        if final_message is None:
            self._abort()
        return final_message

    def _abort(self) -> None:
        if self._files is not None:
            self._files.abort()
            self._files = None

    def _prepare(self, ctx: OperatorContext) -> tuple[pa.Schema, TableShape]:
        """The columns that rows are written in, and the table they are for, as it is in this epoch."""
        if self._schema is None or self._shape is None:
            settings = self._settings
            rows = self._rows(ctx.input_schemas[0])
            shape = self._look(rows)
            schema = shape.written(rows, can_add=settings.can_add)
            self._shape, self._schema = shape, schema
        return self._schema, self._shape

    def _look(self, rows: pa.Schema) -> TableShape:
        settings = self._settings
        table = settings.location.open()
        if table is None:
            if not settings.creates:
                raise DataError(f"there is no table at {settings.location.place}; if_missing: create makes one")
            shape = new_shape(rows, settings.partition_by)
        else:
            check_writable(table, removes=settings.mode is not Mode.APPEND)
            shape = shape_of(table)
        if settings.partition_by and settings.partition_by != shape.partition_by:
            raise DataError(
                f"the table {settings.location.place} is partitioned by {list(shape.partition_by)}, and partition_by "
                f"is {list(settings.partition_by)}: a table keeps its partitions"
            )
        if settings.mode is Mode.OVERWRITE_PARTITIONS and not shape.partition_by:
            raise DataError(f"mode: overwrite_partitions: the table {settings.location.place} has no partitions")
        return shape

    def _rows(self, stream: ArroyoSchema) -> pa.Schema:
        """The columns that are written."""
        rows = without_updating(stream).schema
        return pa.schema([field for field in rows if field.name != self._settings.deleted_column])

    def _check_deleted_column(self, stream: ArroyoSchema) -> None:
        name = self._settings.deleted_column
        if not name:
            return
        if name not in stream.names:
            raise ConfigError(f"no column {name!r}", field="deleted_column", value=name, allowed=stream.names)
        found = stream.schema.field(name).type
        if not pa.types.is_boolean(found):
            raise ConfigError(f"column {name!r} is {found}, not bool", field="deleted_column", value=name)
        if is_updating(stream):
            raise ConfigError("an updating input needs no deleted_column", field="deleted_column", value=name)

    def _check_keys(self, stored: pa.Schema) -> None:
        keys = self._settings.keys
        for index, name in enumerate(keys):
            place = f"keys[{index}]"
            if name not in stored.names:
                raise ConfigError(f"no column {name!r}", field=place, value=name, allowed=stored.names)
            if name in keys[:index]:
                raise ConfigError(f"column {name!r} is named twice", field=place, value=name)
            kind = stored.field(name).type
            if pa.types.is_nested(kind) or pa.types.is_floating(kind):
                raise ConfigError(f"column {name!r} is {kind}, which tells no rows apart", field=place, value=name)

    def _folder(self, ctx: OperatorContext) -> str:
        return f"{node_folder(ctx.task_info, ctx.table_manager.state_id)}/{ctx.epoch}"
