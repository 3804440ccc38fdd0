"""`filesystem.source`: a bounded source over files, cut into splits that subtasks share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from arroyo_formats import WHOLE_FILE, BadData, DamagedFileError, FileReader
from arroyo_formats.conditions import check_columns as check_condition

from arroyo_core.api import (
    ArroyoSchema,
    Dataset,
    DisplayableOperator,
    OperatorContext,
    SourceCollector,
    SourceContext,
    SourceFinishType,
    SourceOperator,
)
from arroyo_core.api.policy import current_policy
from arroyo_core.api.updating import is_updating, with_updating, without_updating
from arroyo_core.errors import ConfigError
from arroyo_core.state import global_table_config
from arroyo_filesystem.commit import commit_epoch
from arroyo_filesystem.dead_letters import BadLines
from arroyo_filesystem.finished_files import FINISHED_TABLE, FinishedFiles
from arroyo_filesystem.folder_values import folder_values, with_folder_columns
from arroyo_filesystem.listing import File
from arroyo_filesystem.new_files import Cut, warn_of_unread
from arroyo_filesystem.progress import SPLITS_TABLE, TABLE, Progress
from arroyo_filesystem.reading import Reading
from arroyo_filesystem.seen_files import SEEN_TABLE
from arroyo_filesystem.skipping import Skipping
from arroyo_filesystem.source_settings import SourceSettings, check_columns, check_event_time, select_columns
from arroyo_filesystem.splits import Split, SplitPlan, choose_split_bytes
from arroyo_filesystem.watching import Watching

if TYPE_CHECKING:
    from arroyo_core.state import TableConfig

DEAD_LETTER_TABLE = "dead_letters"
#: Footers of remote files are fetched at the same time; each is one or two small requests.
PARALLEL_FOOTERS = 16


class FilesystemSource(SourceOperator):
    """Reads every row of the listed files exactly once; then it is final, unless it watches for new ones."""

    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings

    def name(self) -> str:
        return "filesystem.source"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        settings = self._settings
        schema = settings.schema if settings.schema is not None else self._first_schema()
        check_columns(settings.format, schema)
        if settings.predicate is not None:
            check_condition(settings.predicate, schema, field="predicate")
        schema = select_columns(schema, settings.columns)
        if settings.event_time_field is not None:
            check_event_time(schema, settings.event_time_field, settings.format)
        stream = ArroyoSchema(schema, settings.event_time_field)
        if not settings.format.is_updating:
            return stream
        check_columns(settings.format, schema)
        return with_updating(stream)

    def is_selective(self) -> bool:
        """Text is parsed whole, and a row is good or bad as a whole; changes are told apart by all their columns."""
        return not self._settings.format.files.has_lines

    def tables(self) -> dict[str, TableConfig]:
        tables = dict(global_table_config(TABLE, "the splits of the files"))
        tables |= global_table_config(SPLITS_TABLE, "how far each split is read, by subtask", is_partitioned=True)
        if self._settings.watch is not None:
            tables |= global_table_config(SEEN_TABLE, "which files were seen", is_partitioned=True)
            if self._settings.watch.after_commit:
                tables |= global_table_config(FINISHED_TABLE, "files that were read", uses_two_phase_commit=True)
        if self._settings.dead_letter is not None:
            tables |= global_table_config(DEAD_LETTER_TABLE, "files of bad lines to commit", uses_two_phase_commit=True)
        return tables

    def state_settings(self, inputs: Sequence[ArroyoSchema]) -> Mapping[str, str]:
        """What positions are of. The files were listed and cut once: that may be done otherwise the next time."""
        chosen = self._settings.format
        positions = chosen.files.state_settings(chosen.settings)
        return {"path": self._settings.location.place, "format": chosen.name, **positions}

    def is_committing(self) -> bool:
        watch = self._settings.watch
        return self._settings.dead_letter is not None or (watch is not None and bool(watch.after_commit))

    def display(self) -> DisplayableOperator:
        settings = self._settings
        fields = [
            ("path", settings.location.url),
            ("format", settings.format.name),
            ("files", str(len(settings.files))),
            ("new files", settings.watch.display() if settings.watch else "not read; set watch"),
            ("bad_data", str(settings.bad_data)),
            *([("predicate", settings.predicate_text)] if settings.predicate_text else []),
        ]
        return DisplayableOperator(self.name(), fields)

    def datasets(self) -> Sequence[Dataset]:
        return [Dataset.at(self._settings.location.url)]

    def lives_on(self) -> bool:
        return True

    def run(self, ctx: SourceContext, collector: SourceCollector) -> SourceFinishType:
        bad_lines = BadLines(self._settings, ctx)
        try:
            finish = self._run(ctx, collector, bad_lines)
            staged = bad_lines.close()
        except BaseException:
            bad_lines.abort()
            raise
        if staged is not None:
            ctx.table_manager.insert_committing_data(DEAD_LETTER_TABLE, staged)
        return finish

    def handle_commit(self, epoch: int, commit_data: Mapping[str, Mapping[int, bytes]], ctx: OperatorContext) -> None:
        settings = self._settings
        if settings.dead_letter is not None:
            staged, state_id = commit_data.get(DEAD_LETTER_TABLE, {}), ctx.table_manager.state_id
            commit_epoch(settings.dead_letter, epoch, staged, ctx.task_info, state_id=state_id)
        if settings.watch is not None and settings.watch.after_commit:
            finished = FinishedFiles(settings.location, settings.watch, settings.format.name)
            finished.commit(commit_data.get(FINISHED_TABLE, {}), ctx)

    def _run(self, ctx: SourceContext, collector: SourceCollector, bad_lines: BadLines) -> SourceFinishType:
        settings = self._settings
        skipping = self._skipping(ctx)
        reading = Reading(settings, self._reader(ctx, bad_lines), ctx, collector, bad_lines, skipping)
        # The order of changes counts.
        is_ordered, login = is_updating(ctx.output_schema), settings.location.login
        progress = Progress(ctx.table_manager, ctx.task_info, is_ordered=is_ordered, login=login)
        if settings.watch is not None:
            watching = Watching(settings, settings.watch, progress, ctx, cut=self._cutter(ctx), is_ordered=is_ordered)
            return watching.run(reading, collector)
        plan = self._plan(progress, ctx)
        for number, begun in list(progress.open_splits(plan)):
            split = plan.splits[number]
            finish = reading.read(plan.files[split.file], split.part, begun, partial(progress.save, number))
            if finish is not None:
                return finish
        return SourceFinishType.FINAL

    def _plan(self, progress: Progress, ctx: SourceContext) -> SplitPlan:
        """The plan of the first epoch; what was planned then holds, whatever the folder has now."""
        settings = self._settings
        name, url = settings.format.name, settings.location.url
        stored = progress.stored_plan(url=url, kind=name)
        if stored is not None:
            warn_of_unread(stored, settings.files, ctx)
            return stored
        plan = SplitPlan(url, name, settings.files, tuple(self._cutter(ctx)(settings.files)), is_recorded=True)
        progress.store_plan(plan)
        return plan

    def _skipping(self, ctx: SourceContext) -> Skipping:
        return Skipping(self._settings, without_updating(ctx.output_schema).schema, ctx)

    def _cutter(self, ctx: SourceContext) -> Cut:
        skipping = self._skipping(ctx)
        return lambda files: list(self._cut(files, ctx.task_info.parallelism, skipping))

    def _cut(self, files: Sequence[File], parallelism: int, skipping: Skipping) -> Iterator[Split]:
        """Files that are larger than a split are cut as their format does, which may have to open them."""
        settings, chosen = self._settings, self._settings.format
        split_bytes = settings.split_bytes or choose_split_bytes(
            files, greatest=chosen.files.greatest_part_bytes, parallelism=parallelism
        )
        fs = settings.location.fs
        large = [file for file in files if file.size > split_bytes and skipping.is_needed(file.path)]

        def cut(file: File) -> Sequence[tuple[int, int]]:
            try:
                return chosen.files.cut(chosen.settings, fs, file.path, size=file.size, part_bytes=split_bytes)
            except DamagedFileError:
                # Whoever reads it finds the same, and does with it what `bad_data` says.
                return [WHOLE_FILE]

        with ThreadPoolExecutor(1 if settings.location.is_local else PARALLEL_FOOTERS) as pool:
            cuts = pool.map(cut, large)
            parts = dict(zip((file.path for file in large), cuts, strict=True))
        for index, file in enumerate(files):
            for start, stop in parts.get(file.path, [WHOLE_FILE]):
                yield Split(index, start, stop)

    def _reader(self, ctx: SourceContext, bad_lines: BadLines) -> FileReader:
        settings, chosen = self._settings, self._settings.format
        rows_left = ctx.rows_left()
        return chosen.files.reader(
            chosen.settings,
            settings.location.fs,
            schema=without_updating(ctx.output_schema).schema if chosen.is_updating else ctx.output_schema.schema,
            declared=settings.schema,
            batch_rows=settings.batch_rows if rows_left is None else min(settings.batch_rows, max(1, rows_left)),
            on_bad=bad_lines.add,
        )

    def _first_schema(self) -> pa.Schema:
        """The columns of the first file; of the first that is not damaged, where such files are put aside."""
        settings, chosen = self._settings, self._settings.format
        tried = settings.files if settings.bad_data is not BadData.FAIL else settings.files[:1]
        first_error: DamagedFileError | None = None
        policy = current_policy()
        policy.check_url(settings.location.url, field="path")
        for file in tried:
            policy.check_path(file.path, field="path")
            try:
                found = chosen.files.read_schema(chosen.settings, settings.location.fs, file.path)
            except DamagedFileError as error:
                first_error = first_error or error
                continue
            return with_folder_columns(found, folder_values(file.path, settings.location.path))
        raise ConfigError(f"{first_error}; declare the schema", field="path", value=settings.location.url)
