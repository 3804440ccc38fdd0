"""`filesystem.sink`: files that appear whole, and only with the epoch they belong to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
from arroyo_formats import check_writable, installed_formats
from arroyo_formats.bad_data import COUNTER

from arroyo_core.api import (
    ArrowCollector,
    ArrowOperator,
    ArroyoSchema,
    CheckpointBarrier,
    DisplayableOperator,
    OperatorContext,
    SignalMessage,
)
from arroyo_core.api.updating import UPDATING_META, is_updating, split_updates, without_updating
from arroyo_core.errors import ConfigError, DataError
from arroyo_core.state import global_table_config
from arroyo_filesystem.commit import commit_epoch
from arroyo_filesystem.listing import list_files
from arroyo_filesystem.open_files import OpenFiles
from arroyo_filesystem.partitions import NameLimits, check_partitions, partition
from arroyo_filesystem.sink_settings import IfExists, SinkSettings, Updating
from arroyo_filesystem.staging import Staging, encode_files

if TYPE_CHECKING:
    from arroyo_core.state import TableConfig

TABLE = "files"
_STARTED = "started"


class FilesystemSink(ArrowOperator):
    """Writes every row exactly once: staged while the epoch runs, moved to its name when it is committed."""

    def __init__(self, settings: SinkSettings) -> None:
        self._settings = settings
        self._files: OpenFiles | None = None

    def name(self) -> str:
        return "filesystem.sink"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        stream = inputs[0]
        self._check_updating(stream)
        rows = self._rows(stream) if self._is_changes else self._written(stream)
        chosen = self._settings.written.format
        columns = check_partitions(rows, self._settings.partition_by)
        check_writable(chosen.name, chosen.files, chosen.settings, columns)
        return stream

    def is_sink(self) -> bool:
        return True

    def is_committing(self) -> bool:
        return True

    def tables(self, inputs: Sequence[ArroyoSchema]) -> dict[str, TableConfig]:
        return dict(global_table_config(TABLE, "files to commit", uses_two_phase_commit=True))

    def state_settings(self, inputs: Sequence[ArroyoSchema]) -> Mapping[str, str]:
        # Files that wait for their commit are there, and with `if_exists: fail` that folder was found empty.
        return {"path": self._settings.location.place}

    def display(self) -> DisplayableOperator:
        settings = self._settings
        fields = [("path", settings.location.url), ("format", settings.written.format.name)]
        if settings.partition_by:
            fields.append(("partition_by", ", ".join(settings.partition_by)))
        return DisplayableOperator(self.name(), fields)

    def lives_on(self) -> bool:
        return True

    def on_start(self, ctx: OperatorContext) -> None:
        if ctx.task_info.task_index == 0:
            self._check_empty(ctx)

    def _open(self, ctx: OperatorContext) -> OpenFiles:
        """The files of the epoch."""
        if self._files is None:
            self._files = self._make_files(ctx)
        return self._files

    def _make_files(self, ctx: OperatorContext) -> OpenFiles:
        settings = self._settings
        schema = check_partitions(self._written(ctx.input_schemas[0]), settings.partition_by)
        return OpenFiles(
            Staging(settings.location, ctx.task_info, ctx.epoch, state_id=ctx.table_manager.state_id),
            settings.written,
            schema,
            max_file_bytes=settings.max_file_bytes,
            max_open=settings.max_open_files,
            max_folders=settings.max_partitions,
        )

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        files = self._open(ctx)
        if self._settings.updating is Updating.APPEND_ONLY:
            batch, taken_back = split_updates(batch)
            if taken_back.num_rows:
                ctx.count("retractions", taken_back.num_rows)
        for folder, rows in partition(batch, self._settings.partition_by):
            # Now, and not when the file is to get its name: then the epoch is published.
            problem = self._limits.problem(folder)
            if problem is None:
                files.write(folder, rows)
            else:
                self._refuse(problem, rows, ctx)

    def handle_checkpoint(self, barrier: CheckpointBarrier, ctx: OperatorContext, collector: ArrowCollector) -> None:
        staged = self._open(ctx).close()
        self._files = None
        ctx.table_manager.insert_committing_data(TABLE, encode_files(staged))

    def handle_commit(self, epoch: int, commit_data: Mapping[str, Mapping[int, bytes]], ctx: OperatorContext) -> None:
        staged, state_id = commit_data.get(TABLE, {}), ctx.table_manager.state_id
        commit_epoch(self._settings.location, epoch, staged, ctx.task_info, state_id=state_id, has_manifest=True)

    def on_close(
        self, final_message: SignalMessage | None, ctx: OperatorContext, collector: ArrowCollector
    ) -> SignalMessage | None:
        # After END_OF_DATA and STOP one more checkpoint follows, which ends the files.
        if final_message is None and self._files is not None:
            self._files.abort()
        return final_message

    def _refuse(self, problem: str, rows: pa.RecordBatch, ctx: OperatorContext) -> None:
        if not self._settings.drops_bad_partitions:
            raise DataError(f"{problem}; shorten it in front of the sink, or choose bad_partitions: drop")
        ctx.count(COUNTER, rows.num_rows)
        ctx.warn(f"dropped rows that no folder can be named for: {problem}", topic="bad partitions")

    @cached_property
    def _limits(self) -> NameLimits:
        # Not while it is planned: then the storage may be closed.
        return NameLimits.of(self._settings.location)

    @property
    def _is_changes(self) -> bool:
        return self._settings.written.format.is_updating

    def _rows(self, stream: ArroyoSchema) -> pa.Schema:
        return without_updating(stream).schema

    def _written(self, stream: ArroyoSchema) -> pa.Schema:
        """The columns that writers are given."""
        return self._rows(stream) if self._settings.updating is Updating.APPEND_ONLY else stream.schema

    def _check_updating(self, stream: ArroyoSchema) -> None:
        if not is_updating(stream) or self._is_changes or self._settings.updating:
            return
        name = self._settings.written.format.name
        formats = installed_formats().values()
        allowed = sorted(each.name for each in formats if each.is_updating and each.files is not None)
        raise ConfigError(
            f"the input is updating: it takes back rows, and {name} files only gain rows. Write format: "
            f"{' or '.join(allowed)}, put std.upsert in front, or choose updating: append_only (without what is taken "
            f"back) or keep_meta (with the column {UPDATING_META!r})",
            field="format",
            value=name,
            allowed=allowed,
        )

    def _check_empty(self, ctx: OperatorContext) -> None:
        """With `if_exists: fail`, refuse a folder with files, but only before this job wrote any itself."""
        view = ctx.table_manager.get_global_keyed_state(TABLE)
        if self._settings.if_exists is not IfExists.FAIL or view.get(_STARTED):
            return
        view.insert(_STARTED, True)
        try:
            found = list_files(self._settings.location, None)
        except ConfigError:
            return
        raise DataError(
            f"{self._settings.location.url!r} already has files, such as {found[0].path!r}, and if_exists is fail"
        )
