"""`filesystem.source`: a bounded source over files, cut into splits that subtasks share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from arroyo_core.api import (
    ArroyoSchema,
    DisplayableOperator,
    OperatorContext,
    SourceCollector,
    SourceContext,
    SourceFinishType,
    SourceOperator,
)
from arroyo_core.api.updating import is_updating, with_updating, without_updating
from arroyo_core.errors import DataError
from arroyo_core.state import global_table_config
from arroyo_filesystem.commit import commit_epoch
from arroyo_filesystem.dead_letters import BadLines
from arroyo_filesystem.folder_values import (
    fill_folder_columns,
    folder_scalars,
    folder_values,
    with_folder_columns,
)
from arroyo_filesystem.formats import arrow_ipc, debezium, parquet, text
from arroyo_filesystem.formats.format import Format
from arroyo_filesystem.listing import File, file_of_info
from arroyo_filesystem.progress import FINISHED, SPLITS_TABLE, TABLE, Progress
from arroyo_filesystem.source_settings import (
    SourceSettings,
    check_event_time,
    check_text_types,
    select_columns,
)
from arroyo_filesystem.splits import (
    TO_THE_END,
    Split,
    SplitPlan,
    choose_split_bytes,
    cut_parts,
    cut_text,
    needs_parts,
)

if TYPE_CHECKING:
    from arroyo_core.state import TableConfig

DEAD_LETTER_TABLE = "dead_letters"
#: Footers of remote files are fetched at the same time; each is one or two small requests.
PARALLEL_FOOTERS = 16


class Reader(Protocol):
    """Reads one split of a file from a position on."""

    def read(self, path: str, split: Split, position: int) -> Iterator[tuple[pa.RecordBatch | None, int]]: ...


class FilesystemSource(SourceOperator):
    """Reads every row of the listed files exactly once; then it is final."""

    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings

    def name(self) -> str:
        return "filesystem.source"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        settings = self._settings
        schema = settings.schema if settings.schema is not None else self._first_schema()
        check_text_types(schema, settings.format)
        schema = select_columns(schema, settings.columns)
        if settings.event_time_field is not None:
            check_event_time(schema, settings.event_time_field, settings.format)
        stream = ArroyoSchema(schema, settings.event_time_field)
        if settings.format is not Format.DEBEZIUM_JSON:
            return stream
        debezium.key_columns(schema, settings.primary_key)
        return with_updating(stream)

    def is_selective(self) -> bool:
        """Text is parsed whole, and a row is good or bad as a whole; changes are told apart by all their columns."""
        return not self._settings.format.is_text

    def tables(self) -> dict[str, TableConfig]:
        tables = dict(global_table_config(TABLE, "the splits of the files"))
        tables |= global_table_config(SPLITS_TABLE, "how far each split is read, by subtask", is_partitioned=True)
        if self._settings.dead_letter is not None:
            tables |= global_table_config(DEAD_LETTER_TABLE, "files of bad lines to commit", uses_two_phase_commit=True)
        return tables

    def state_settings(self, inputs: Sequence[ArroyoSchema]) -> Mapping[str, str]:
        """What positions are of. The files were listed and cut once: that may be done otherwise the next time."""
        settings = self._settings
        return {
            "path": settings.location.place,
            "format": str(settings.format),
            "newlines in values": "yes" if settings.dialect.newlines_in_values else "no",
        }

    def is_committing(self) -> bool:
        return self._settings.dead_letter is not None

    def display(self) -> DisplayableOperator:
        settings = self._settings
        fields = [
            ("path", settings.location.url),
            ("format", str(settings.format)),
            ("files", str(len(settings.files))),
            ("bad_data", str(settings.bad_data)),
        ]
        return DisplayableOperator(self.name(), fields)

    def run(self, ctx: SourceContext, collector: SourceCollector) -> SourceFinishType:
        info = ctx.task_info
        bad_lines = BadLines(self._settings, ctx)
        try:
            # The order of changes counts.
            progress = Progress(ctx.table_manager, info, is_ordered=is_updating(ctx.output_schema))
            plan = self._plan(progress, info.parallelism)
            finish = self._read(ctx, collector, progress=progress, plan=plan, bad_lines=bad_lines)
            staged = bad_lines.close()
        except BaseException:
            bad_lines.abort()
            raise
        if staged is not None:
            ctx.table_manager.insert_committing_data(DEAD_LETTER_TABLE, staged)
        return finish

    def handle_commit(self, epoch: int, commit_data: Mapping[str, Mapping[int, bytes]], ctx: OperatorContext) -> None:
        if self._settings.dead_letter is not None:
            staged, state_id = commit_data.get(DEAD_LETTER_TABLE, {}), ctx.table_manager.state_id
            commit_epoch(self._settings.dead_letter, epoch, staged, ctx.task_info, state_id=state_id)

    def _read(
        self,
        ctx: SourceContext,
        collector: SourceCollector,
        *,
        progress: Progress,
        plan: SplitPlan,
        bad_lines: BadLines,
    ) -> SourceFinishType:
        reader = self._reader(ctx, bad_lines)
        is_changes = self._settings.format is Format.DEBEZIUM_JSON
        for number, begun in list(progress.open_splits(plan)):
            message = ctx.control()
            if message is not None:
                return message.finish_type
            split = plan.splits[number]
            file = plan.files[split.file]
            self._check_unchanged(file)
            values = folder_values(file.path, self._settings.location.path)
            scalars = folder_scalars(ctx.output_schema.schema, values, path=file.path)
            for batch, position in reader.read(file.path, split, begun):
                if batch is not None:
                    filled = fill_folder_columns(batch, scalars)
                    collector.collect(self._with_ids(filled) if is_changes else filled)
                message = ctx.control()
                if message is not None:
                    progress.save(number, position)
                    return message.finish_type
            progress.save(number, FINISHED)
        return SourceFinishType.FINAL

    def _with_ids(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        rows = without_updating(ArroyoSchema(batch.schema)).schema
        return debezium.set_ids(batch, debezium.key_columns(rows, self._settings.primary_key))

    def _plan(self, progress: Progress, parallelism: int) -> SplitPlan:
        """The plan of the first epoch; what was planned then holds, whatever the folder has now."""
        settings = self._settings
        stored = progress.stored_plan(url=settings.location.url, kind=settings.format)
        if stored is not None:
            return stored
        split_bytes = settings.split_bytes or choose_split_bytes(
            settings.files, kind=settings.format, parallelism=parallelism
        )
        splits = tuple(self._cut(split_bytes))
        plan = SplitPlan(settings.location.url, settings.format, settings.files, splits, is_recorded=True)
        progress.store_plan(plan)
        return plan

    def _cut(self, split_bytes: int) -> Iterator[Split]:
        settings = self._settings
        if settings.format.is_text:
            is_splittable = not settings.dialect.newlines_in_values
            for index, file in enumerate(settings.files):
                yield from cut_text(index, file, split_bytes=split_bytes, is_splittable=is_splittable)
            return
        opened = [file for file in settings.files if needs_parts(file, kind=settings.format, split_bytes=split_bytes)]
        part_bytes = parquet.part_bytes if settings.format is Format.PARQUET else arrow_ipc.part_bytes
        with ThreadPoolExecutor(1 if settings.location.is_local else PARALLEL_FOOTERS) as pool:
            sizes = pool.map(lambda file: part_bytes(settings.location.fs, file.path), opened)
            parts = dict(zip((file.path for file in opened), sizes, strict=True))
        for index, file in enumerate(settings.files):
            if file.path in parts:
                yield from cut_parts(index, parts[file.path], split_bytes=split_bytes)
            else:
                yield Split(index, 0, TO_THE_END)

    def _reader(self, ctx: SourceContext, bad_lines: BadLines) -> Reader:
        settings = self._settings
        schema, fs = ctx.output_schema.schema, settings.location.fs
        rows_left = ctx.rows_left()
        batch_rows = settings.batch_rows if rows_left is None else min(settings.batch_rows, max(1, rows_left))
        if settings.format is Format.PARQUET:
            return parquet.ParquetReader(fs, schema=schema, batch_rows=batch_rows)
        if settings.format is Format.ARROW:
            return arrow_ipc.ArrowReader(fs, schema=schema, batch_rows=batch_rows)
        is_changes = settings.format is Format.DEBEZIUM_JSON
        return text.TextReader(
            fs,
            kind=settings.format,
            schema=without_updating(ctx.output_schema).schema if is_changes else schema,
            batch_rows=batch_rows,
            dialect=settings.dialect,
            on_bad=bad_lines.add,
        )

    def _check_unchanged(self, file: File) -> None:
        """A file that is another one than when it was listed would be read partly twice, or partly not at all."""
        try:
            now = file_of_info(self._settings.location.fs.info(file.path))
        except FileNotFoundError:
            raise DataError(f"{file.path}: the file was there when the job began, and is gone") from None
        if file.is_changed(now):
            raise DataError(
                f"{file.path}: the file changed after the job began (it had {file.size} bytes, now {now.size}; "
                f"{file.version or 'no version'}, now {now.version or 'none'})"
            )

    def _first_schema(self) -> pa.Schema:
        path = self._settings.files[0].path
        return with_folder_columns(self._file_schema(path), folder_values(path, self._settings.location.path))

    def _file_schema(self, path: str) -> pa.Schema:
        settings = self._settings
        fs = settings.location.fs
        if settings.format is Format.PARQUET:
            return parquet.read_schema(fs, path)
        if settings.format is Format.ARROW:
            return arrow_ipc.read_schema(fs, path)
        return text.read_schema(fs, path, kind=settings.format, dialect=settings.dialect)
