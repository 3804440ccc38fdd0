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
    Dataset,
    DisplayableOperator,
    OperatorContext,
    SignalMessage,
)
from arroyo_core.api.updating import UPDATING_META, is_updating, split_updates, without_updating
from arroyo_core.errors import ConfigError, DataError
from arroyo_core.state import global_table_config
from arroyo_filesystem.commit import commit_epoch
from arroyo_filesystem.folder_times import FolderTimes
from arroyo_filesystem.held_rows import HELD_TABLE, HeldRows, sweep_held
from arroyo_filesystem.listing import list_files
from arroyo_filesystem.open_files import OpenFiles
from arroyo_filesystem.partitions import NameLimits, check_partitions, partition
from arroyo_filesystem.sink_settings import IfExists, SinkSettings, Updating
from arroyo_filesystem.sorting import check_sort_by
from arroyo_filesystem.staging import Staging, decode_held, encode_files

if TYPE_CHECKING:
    from arroyo_core.state import TableConfig

TABLE = "files"
_STARTED = "started"


class FilesystemSink(ArrowOperator):
    """Writes every row exactly once: staged while the epoch runs, moved to its name when it is committed."""

    def __init__(self, settings: SinkSettings) -> None:
        self._settings = settings
        self._files: OpenFiles | None = None
        self._staging: Staging | None = None
        self._held: HeldRows | None = None
        #: Whether the job ends with this epoch, or is stopped.
        self._is_last = False

    def name(self) -> str:
        return "filesystem.sink"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        stream = inputs[0]
        self._check_updating(stream)
        rows = self._rows(stream) if self._is_changes else self._written(stream)
        chosen = self._settings.written.format
        columns = check_partitions(rows, self._settings.partition_by)
        check_sort_by(columns, self._settings.written.sort_by)
        self._folder_times(stream)
        check_writable(chosen.name, chosen.files, chosen.settings, columns)
        return stream

    def is_sink(self) -> bool:
        return True

    def is_committing(self) -> bool:
        return True

    def tables(self, inputs: Sequence[ArroyoSchema]) -> dict[str, TableConfig]:
        tables = dict(global_table_config(TABLE, "files to commit", uses_two_phase_commit=True))
        return tables | global_table_config(HELD_TABLE, "parts of files to come", is_partitioned=True)

    def is_row_wise(self, inputs: Sequence[ArroyoSchema]) -> bool:
        # Rows that are held come out as they are.
        return True

    def state_settings(self, inputs: Sequence[ArroyoSchema]) -> Mapping[str, str]:
        # Files that wait for their commit are there, and with `if_exists: fail` that folder was found empty.
        return {"path": self._settings.location.place}

    def display(self) -> DisplayableOperator:
        settings = self._settings
        fields = [("path", settings.location.url), ("format", settings.written.format.name)]
        if settings.partition_by:
            fields.append(("partition_by", ", ".join(settings.partition_by)))
        return DisplayableOperator(self.name(), fields)

    def datasets(self) -> Sequence[Dataset]:
        return [Dataset.at(self._settings.location.url)]

    def lives_on(self) -> bool:
        return True

    def on_start(self, ctx: OperatorContext) -> None:
        if ctx.task_info.task_index == 0:
            self._check_empty(ctx)
        settings = self._settings
        self._held = HeldRows(
            ctx.table_manager,
            ctx.task_info,
            settings.location,
            self._columns(ctx),
            min_file_bytes=settings.min_file_bytes,
            max_hold_us=settings.max_hold_us,
            max_open=settings.max_open_files,
            times=self._folder_times(ctx.input_schemas[0]),
        )

    def _folder_times(self, stream: ArroyoSchema) -> FolderTimes | None:
        """What tells when a folder is over; None where that makes no difference."""
        return FolderTimes.of(stream, self._settings.partition_by) if self._settings.closes_at_watermark else None

    def _columns(self, ctx: OperatorContext) -> pa.Schema:
        """Those of the files."""
        return check_partitions(self._written(ctx.input_schemas[0]), self._settings.partition_by)

    def _open(self, ctx: OperatorContext) -> OpenFiles:
        """The files of the epoch."""
        if self._files is None:
            self._files = self._make_files(ctx)
        return self._files

    def _make_files(self, ctx: OperatorContext) -> OpenFiles:
        settings = self._settings
        self._staging = Staging(
            settings.location, ctx.task_info, ctx.epoch, ctx.clock, state_id=ctx.table_manager.state_id
        )
        return OpenFiles(
            self._staging,
            settings.written,
            self._columns(ctx),
            max_file_bytes=settings.max_file_bytes,
            max_file_rows=settings.max_file_rows,
            max_open=settings.max_open_files,
            max_folders=settings.max_partitions,
        )

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        files = self._open(ctx)
        held, staging = self._held, self._staging
        if held is None or staging is None:
            raise AssertionError("on_start comes first")
        if self._settings.updating is Updating.APPEND_ONLY:
            batch, taken_back = split_updates(batch)
            if taken_back.num_rows:
                ctx.count("retractions", taken_back.num_rows)
        for folder, rows in partition(batch, self._settings.partition_by):
            # Now, and not when the file is to get its name: then the epoch is published.
            problem = self._limits.problem(folder)
            if problem is None:
                if rows.num_rows:
                    files.count_folder(folder)
                held.write(folder, rows, files, staging, now_us=ctx.clock.now_us())
            else:
                self._refuse(problem, rows, ctx)

    def handle_checkpoint(self, barrier: CheckpointBarrier, ctx: OperatorContext, collector: ArrowCollector) -> None:
        files, held = self._open(ctx), self._held
        if held is None:
            raise AssertionError("on_start comes first")
        watermark_us = ctx.last_present_watermark()
        held.checkpoint(files, now_us=ctx.clock.now_us(), watermark_us=watermark_us, is_last=self._is_last)
        staged = files.close()
        held.note_files(staged)
        self._files = self._staging = None
        ctx.table_manager.insert_committing_data(TABLE, encode_files(staged, held.names))

    def handle_commit(self, epoch: int, commit_data: Mapping[str, Mapping[int, bytes]], ctx: OperatorContext) -> None:
        staged, state_id = commit_data.get(TABLE, {}), ctx.table_manager.state_id
        commit_epoch(self._settings.location, epoch, staged, ctx.task_info, state_id=state_id, has_manifest=True)
        held = {subtask: decode_held(data) for subtask, data in staged.items()}
        if any(names is not None for names in held.values()):
            kept = {subtask: names or [] for subtask, names in held.items()}
            sweep_held(self._settings.location, ctx.task_info, epoch, kept, state_id=state_id)

    def on_close(
        self, final_message: SignalMessage | None, ctx: OperatorContext, collector: ArrowCollector
    ) -> SignalMessage | None:
        # After END_OF_DATA and STOP one more checkpoint follows, which ends the files.
        self._is_last = final_message is not None
        if final_message is None and self._files is not None:
            self._files.abort()
        if final_message is None and self._held is not None:
            self._held.abort()
        return final_message

    def _refuse(self, problem: str, rows: pa.RecordBatch, ctx: OperatorContext) -> None:
        if not self._settings.drops_bad_partitions:
            raise DataError(f"{problem}; shorten it in front of the sink, or choose bad_partitions: drop")
        ctx.count(COUNTER, rows.num_rows)
        ctx.warn(f"dropped rows that no folder can be named for: {problem}", topic="bad partitions")

    @cached_property
    def _limits(self) -> NameLimits:
        # Not while it is planned: then the storage may be closed.
        return NameLimits.of(self._settings.location, repeats_folder=self._settings.written.names.repeats_folder)

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
