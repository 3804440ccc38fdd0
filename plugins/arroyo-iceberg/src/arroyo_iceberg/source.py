"""`iceberg.source`: the rows of a snapshot, and of those that follow it, each once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from arroyo_core.api import (
    OUTAGES,
    ArroyoSchema,
    ControlMessage,
    Dataset,
    DisplayableOperator,
    Outages,
    RetryPolicy,
    SourceCollector,
    SourceContext,
    SourceFinishType,
    SourceOperator,
    Watermark,
)
from arroyo_core.api.units import format_duration_us
from arroyo_core.api.updating import make_updates, row_ids, with_updating, without_updating
from arroyo_core.errors import DataError, ExternalError
from arroyo_core.state import global_table_config
from arroyo_iceberg.catalog import translated
from arroyo_iceberg.history import LostHistoryError, following, head_of
from arroyo_iceberg.positions import BUCKETS, TABLE, Position, Positions
from arroyo_iceberg.reading import Unit, reader_of
from arroyo_iceberg.snapshots import Part, Snapshots
from arroyo_iceberg.source_settings import Change, PlannedTable, SourceSettings, plan_table

if TYPE_CHECKING:
    from pyiceberg.table.snapshots import Snapshot

    from arroyo_core.state import TableConfig


class IcebergSource(SourceOperator):
    """Reads every row of a table once: those of a snapshot, then those that later ones append, or all changes."""

    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings

    def name(self) -> str:
        return "iceberg.source"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        stream = ArroyoSchema(self._planned.schema, self._settings.event_time_field)
        return with_updating(stream) if self._settings.has_changes else stream

    def is_selective(self) -> bool:
        """The id of a change is made of columns that nobody else may need."""
        return not self._settings.has_changes

    def tables(self) -> dict[str, TableConfig]:
        return {
            **global_table_config(TABLE, "how far each part of the table is read", is_partitioned=True),
            **global_table_config(OUTAGES, "since when the catalog fails", is_partitioned=True),
        }

    def state_settings(self, inputs: Sequence[ArroyoSchema]) -> Mapping[str, str]:
        """What positions are of."""
        reads = "changes" if self._settings.has_changes else "rows"
        return {"table": str(self._settings.table), "branch": self._settings.branch, "reads": reads}

    def display(self) -> DisplayableOperator:
        settings = self._settings
        fields = [
            ("catalog", settings.catalog.shown),
            ("table", str(settings.table)),
            ("start", str(settings.start)),
            ("new snapshots", f"every {format_duration_us(settings.watch_us)}" if settings.watch_us else "not read"),
        ]
        if settings.has_changes:
            fields.append(("changes", f"rows are known by {', '.join(self._keys)}"))
        if settings.branch != "main":
            fields.append(("branch", settings.branch))
        return DisplayableOperator(self.name(), fields)

    def datasets(self) -> Sequence[Dataset]:
        return [self._settings.catalog.dataset(self._settings.table)]

    def lives_on(self) -> bool:
        return True

    def run(self, ctx: SourceContext, collector: SourceCollector) -> SourceFinishType:
        planned = self._planned
        buckets = 1 if self._settings.has_changes else BUCKETS
        positions = Positions(ctx.table_manager, ctx.task_info, buckets=buckets)
        positions.begin(planned.table_id, planned.begin, planned.until, has_until=self._settings.watch_us is None)
        outages = Outages(ctx, RetryPolicy(max_duration_s=self._settings.give_up_us / 1e6))
        while (message := outages.wait()) is None:
            try:
                message = self._read_round(ctx, collector, positions)
            except (ExternalError, OSError) as error:
                if isinstance(error, FileNotFoundError):
                    raise _lost_file(error) from error
                outages.failed(error)
                continue
            outages.succeeded()
            if message is None:
                if self._settings.watch_us is None:
                    return SourceFinishType.FINAL
                # Nobody has to wait for the event time of a source that has nothing.
                collector.broadcast_watermark(Watermark.idle())
                message = ctx.wait(self._settings.watch_us / 1e6)
            if message is not None:
                break
        return message.finish_type

    @property
    def _keys(self) -> Sequence[str]:
        """What the ids of changes are made of."""
        return self._settings.keys or self._planned.schema.names

    @property
    def _planned(self) -> PlannedTable:
        return self._settings.planned if self._settings.planned is not None else plan_table(self._settings)

    def _read_round(
        self, ctx: SourceContext, collector: SourceCollector, positions: Positions
    ) -> ControlMessage | None:
        """Read what there is now; the message that ends the epoch, or None where all is read."""
        with translated(f"cannot read table {self._settings.table}"):
            table = self._settings.catalog.load(self._settings.table, doing="read")
            snapshots = Snapshots(table)
            head = head_of(table.metadata, self._settings.branch)
            while (found := self._next(snapshots, head, positions)) is not None:
                bucket, position = found
                message = self._read_bucket(ctx, collector, positions, snapshots, bucket, position)
                if message is not None:
                    return message
        return ctx.control()

    def _next(self, snapshots: Snapshots, head: Snapshot | None, positions: Positions) -> tuple[int, Position] | None:
        """The bucket that is furthest behind, with the position that it goes on at; None where all is read."""
        table = snapshots.table
        best: tuple[int, int, Position] | None = None
        later: dict[int | None, Sequence[Snapshot]] = {}
        for bucket in positions.own():
            position = positions.get(bucket)
            if position is None:
                raise AssertionError("begin comes first")
            if position.table_id != str(table.metadata.table_uuid):
                raise LostHistoryError(
                    f"table {self._settings.table} is another one than the source has read: it was dropped and made "
                    "again. To read the new one, give the node another id"
                )
            if position.is_done and position.has_until and position.snapshot == position.until:
                continue
            if not position.is_done:
                # Before anything else is said of it: it may have expired.
                snapshots.operation(position.snapshot)
            if position.snapshot not in later:
                later[position.snapshot] = following(table.metadata, head, position.place)
            behind = len(later[position.snapshot]) + (not position.is_done)
            if not behind or (best is not None and behind <= best[0]):
                continue
            if position.is_done:
                position = position.next(later[position.snapshot][0])
            best = (behind, bucket, position)
        return None if best is None else (best[1], best[2])

    def _read_bucket(
        self,
        ctx: SourceContext,
        collector: SourceCollector,
        positions: Positions,
        snapshots: Snapshots,
        bucket: int,
        position: Position,
    ) -> ControlMessage | None:
        """Read what a bucket has of one snapshot."""
        schema = without_updating(ctx.output_schema).schema
        for number, unit in enumerate(self._units(ctx, snapshots, bucket, position)[bucket :: positions.buckets]):
            if number < position.files:
                continue
            reader = reader_of(snapshots.table, schema)
            start = position.rows if number == position.files else 0
            rows_left = ctx.rows_left()
            batch_rows = self._settings.batch_rows if rows_left is None else min(self._settings.batch_rows, rows_left)
            for batch, after in reader.read(unit, start=start, batch_rows=max(1, batch_rows)):
                message = ctx.control()
                if message is not None:
                    return message
                if batch.num_rows:
                    collector.collect(self._as_changes(batch, unit))
                positions.set(bucket, position.at(number, after))
            positions.set(bucket, position.at(number + 1, 0))
        positions.set(bucket, position.finished())
        return ctx.control()

    def _as_changes(self, batch: pa.RecordBatch, unit: Unit) -> pa.RecordBatch:
        if not self._settings.has_changes:
            return batch
        return make_updates(batch, is_retract=unit.is_taken_away, ids=row_ids(batch, self._keys))

    def _units(self, ctx: SourceContext, snapshots: Snapshots, bucket: int, position: Position) -> Sequence[Unit]:
        """What is read of a snapshot, by all buckets."""
        snapshot = position.snapshot
        if snapshot is None:
            return ()
        if position.is_full:
            return snapshots.units(snapshot, Part.ALL)
        match snapshots.operation(snapshot):
            case "append":
                return snapshots.units(snapshot, Part.ADDED)
            case "replace":
                return ()
            case operation if not self._settings.has_changes:
                self._refuse_change(ctx, snapshot, operation, bucket)
                return ()
        return snapshots.units(snapshot, Part.CHANGED)

    def _refuse_change(self, ctx: SourceContext, snapshot: int, operation: str, bucket: int) -> None:
        if self._settings.on_change is Change.FAIL:
            raise DataError(
                f"snapshot {snapshot} of table {self._settings.table} is of operation {operation!r}: it takes rows "
                "away or changes them, and the source reads only what is added. A node with another id and changes: "
                "true reads them, and the table again from its start; on_change: skip leaves out such snapshots, with "
                "the rows that they add"
            )
        if bucket == 0:
            ctx.count("skipped_snapshots")
            ctx.warn(
                f"skipped snapshot {snapshot} of operation {operation!r}, with the rows that it adds",
                topic="skipped snapshots",
            )


def _lost_file(error: FileNotFoundError) -> LostHistoryError:
    return LostHistoryError(
        f"a file of the table is gone while the source reads it: {error}. Has its snapshot expired, or was it deleted "
        "by hand?"
    )
