"""`delta.source`: the rows of a table in one version, then what later versions add, take away and change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from arroyo_core.api import (
    ArroyoSchema,
    Dataset,
    DisplayableOperator,
    SourceCollector,
    SourceContext,
    SourceFinishType,
    SourceOperator,
    Watermark,
)
from arroyo_core.api.units import format_duration_us
from arroyo_core.api.updating import with_updating, without_updating
from arroyo_core.errors import DataError
from arroyo_core.state import global_table_config
from arroyo_delta.log import TableLog, Unit, Version
from arroyo_delta.progress import POSITIONS_TABLE, START_TABLE, Position, Progress
from arroyo_delta.reading import UnitReader
from arroyo_delta.source_settings import OnChange, SourceSettings

if TYPE_CHECKING:
    from arroyo_core.state import TableConfig


class DeltaSource(SourceOperator):
    """Reads every row once; then it is final, unless it watches for new versions."""

    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings
        #: The version that was looked at last: a snapshot is expensive to list.
        self._seen: tuple[bool, Version] | None = None

    def name(self) -> str:
        return "delta.source"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        stream = ArroyoSchema(self._settings.schema, self._settings.event_time_field)
        return with_updating(stream) if self._settings.has_changes else stream

    def is_selective(self) -> bool:
        """The id of a change is made of columns that nobody else may need."""
        return not self._settings.has_changes

    def tables(self) -> dict[str, TableConfig]:
        return {
            **global_table_config(START_TABLE, "where it began"),
            **global_table_config(POSITIONS_TABLE, "how far each part of the table is read", is_partitioned=True),
        }

    def state_settings(self, inputs: Sequence[ArroyoSchema]) -> Mapping[str, str]:
        changes = "changes" if self._settings.has_changes else "rows"
        return {"table": self._settings.location.place, "reads": changes}

    def display(self) -> DisplayableOperator:
        settings = self._settings
        ends = f"every {format_duration_us(settings.watch_us)}" if settings.watch_us else "not read; set watch"
        begins = f"{'snapshot of version' if settings.start.is_snapshot else 'version'} {settings.start.version}"
        fields = [("table", settings.location.place), ("start", begins), ("new versions", ends)]
        return DisplayableOperator(self.name(), fields)

    def datasets(self) -> Sequence[Dataset]:
        return [Dataset.at(self._settings.location.url)]

    def lives_on(self) -> bool:
        return True

    def run(self, ctx: SourceContext, collector: SourceCollector) -> SourceFinishType:
        settings = self._settings
        progress = Progress(ctx.table_manager, ctx.task_info, settings.start, is_ordered=settings.has_changes)
        finish = self._read(ctx, collector, progress)
        progress.save()
        return finish

    def _read(self, ctx: SourceContext, collector: SourceCollector, progress: Progress) -> SourceFinishType:
        settings = self._settings
        log = TableLog(settings.location, has_changes=settings.has_changes, table_id=progress.start.table_id)
        reader = self._reader(ctx)
        end = self._end(progress)
        is_waiting = False
        while (message := ctx.control()) is None:
            if progress.is_idle or (end is not None and progress.version > end):
                if end is not None:
                    return SourceFinishType.FINAL
                version = None
            else:
                version = self._find(log, progress)
            if version is None:
                if end is not None:
                    raise DataError(
                        f"version {progress.version} of the table {settings.location.place} is gone, and the job is to "
                        f"read it up to version {end}"
                    )
                if not is_waiting:
                    # Nobody shall wait for the event time of rows that may never come.
                    collector.broadcast_watermark(Watermark.idle())
                is_waiting = True
                message = ctx.wait((settings.watch_us or 0) / 1_000_000)
                if message is not None:
                    return message.finish_type
                continue
            is_waiting = False
            if self._is_skipped(version, progress, ctx):
                progress.finish(version.number)
                continue
            finish = self._read_version(ctx, collector, progress, reader, version)
            if finish is not None:
                return finish
            progress.finish(version.number)
        return message.finish_type

    def _read_version(
        self,
        ctx: SourceContext,
        collector: SourceCollector,
        progress: Progress,
        reader: UnitReader,
        version: Version,
    ) -> SourceFinishType | None:
        """Read what is left of a version; what to return where the epoch ends before it does."""
        units: dict[int, list[Unit]] = {slot: [] for slot in progress.slots()}
        for unit in version.units:
            slot = progress.slot(unit)
            if slot in units:
                units[slot].append(unit)
        for slot, own in units.items():
            position = progress.position(slot)
            if position.version != version.number:
                continue
            for index in range(position.done, len(own)):
                begin = position.row if index == position.done else 0
                for batch, row in reader.read(own[index], begin):
                    if batch.num_rows:
                        collector.collect(batch)
                    progress.move(slot, Position(version.number, index, row))
                    message = ctx.control()
                    if message is not None:
                        return message.finish_type
                progress.move(slot, Position(version.number, index + 1))
        return None

    def _find(self, log: TableLog, progress: Progress) -> Version | None:
        number, start = progress.version, progress.start
        is_snapshot = start.is_snapshot and number == start.version
        if self._seen is not None and self._seen[0] == is_snapshot and self._seen[1].number == number:
            return self._seen[1]
        found = log.snapshot(number) if is_snapshot else log.find(number)
        self._seen = (is_snapshot, found) if found is not None else None
        return found

    def _is_skipped(self, version: Version, progress: Progress, ctx: SourceContext) -> bool:
        settings = self._settings
        if settings.has_changes or not version.removes:
            return False
        what = f"version {version.number} ({version.operation or 'of unknown operation'}) of the table"
        if settings.on_change is OnChange.FAIL:
            raise DataError(
                f"{what} {settings.location.place} takes rows away or changes them: read it with changes: true, or "
                "leave such versions out with on_change: skip"
            )
        if ctx.task_info.task_index == 0:
            ctx.count("skipped_versions")
            ctx.warn(f"{what} was left out: it takes rows away or changes them", topic="skipped versions")
        return True

    def _end(self, progress: Progress) -> int | None:
        """The last version to read: the one of the first start, whatever has come since."""
        if self._settings.watch_us is not None:
            return None
        return progress.start.end if progress.start.end is not None else self._settings.start.end

    def _reader(self, ctx: SourceContext) -> UnitReader:
        settings = self._settings
        left = ctx.rows_left()
        return UnitReader(
            settings.location.files(),
            without_updating(ctx.output_schema).schema,
            settings.partition_by,
            batch_rows=settings.batch_rows if left is None else min(settings.batch_rows, max(1, left)),
            keys=settings.keys if settings.has_changes else None,
        )
