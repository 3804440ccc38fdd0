"""`postgres.cdc`: a table of PostgreSQL and its changes, each exactly once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
from arroyo_connectors import reader_of, snapshot_tables

from arroyo_core.api import (
    OUTAGES,
    ArroyoSchema,
    ControlMessage,
    Dataset,
    DisplayableOperator,
    OperatorContext,
    Outages,
    RetryPolicy,
    SourceCollector,
    SourceContext,
    SourceFinishType,
    SourceOperator,
    Watermark,
)
from arroyo_core.api.updating import with_updating
from arroyo_core.errors import ArroyoError, ExternalError
from arroyo_core.state import global_table_config
from arroyo_postgres.cdc.epoch import CdcEpoch
from arroyo_postgres.cdc.settings import CdcSettings
from arroyo_postgres.cdc.slots import InterruptedByControlError, advance
from arroyo_postgres.cdc.state import CdcState

if TYPE_CHECKING:
    from arroyo_core.state import TableConfig

COMMITS_TABLE = "c"
#: How long a subtask that has nothing to read waits before it asks again.
STAND_BY_SECONDS = 1.0


class PostgresCdc(SourceOperator):
    """One subtask reads the table; the others are idle."""

    def __init__(self, settings: CdcSettings) -> None:
        self._settings = settings

    def name(self) -> str:
        return "postgres.cdc"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        stream = ArroyoSchema(self._settings.schema, self._settings.event_time_field)
        return stream if self._settings.inserts_only else with_updating(stream)

    def tables(self) -> dict[str, TableConfig]:
        tables = snapshot_tables()
        tables |= global_table_config(OUTAGES, "since when the database fails", is_partitioned=True)
        tables |= global_table_config(COMMITS_TABLE, "where a stopped job is", uses_two_phase_commit=True)
        return tables

    def state_settings(self, inputs: Sequence[ArroyoSchema]) -> Mapping[str, str]:
        """What a position is of."""
        settings = self._settings
        return {"table": settings.table_name, "slot": settings.slot, "changes": self._changes()}

    def is_committing(self) -> bool:
        return True

    def emits_watermarks(self) -> bool:
        return self._settings.max_lateness_us is not None

    def display(self) -> DisplayableOperator:
        settings = self._settings
        rows = [
            ("database", settings.server.display()),
            ("table", settings.table_name),
            ("columns", ", ".join(column.name for column in settings.columns)),
            ("key", ", ".join(column.name for column in settings.table.key) or "none: the snapshot is one chunk"),
            ("slot", settings.slot or None),
            ("publication", settings.publication or None),
            ("snapshot", settings.snapshot.value),
            ("changes", self._changes()),
            ("read by", "one subtask"),
        ]
        return DisplayableOperator(self.name(), [(label, value) for label, value in rows if value is not None])

    def datasets(self) -> Sequence[Dataset]:
        return [self._settings.server.dataset(self._settings.table_name)]

    def lives_on(self) -> bool:
        return True

    def on_start(self, ctx: SourceContext) -> None:
        # Every subtask takes its views, for another may read the table at the next parallelism.
        self._state = CdcState(ctx.table_manager, ctx.task_info, self._settings.table_name)
        self._outages = Outages(ctx, RetryPolicy(max_duration_s=self._settings.give_up_after_s))

    def run(self, ctx: SourceContext, collector: SourceCollector) -> SourceFinishType:
        task = ctx.task_info
        if task.task_index != reader_of(self._settings.table_name, task.parallelism):
            return self._stand_by(ctx, collector)
        epoch = CdcEpoch(self._settings, ctx, collector, self._state)
        finish = None
        try:
            finish = self._read(ctx, epoch)
        finally:
            epoch.close(finish)
        if finish is not SourceFinishType.CHECKPOINTED and self._settings.slot and epoch.lsn:
            ctx.table_manager.insert_committing_data(COMMITS_TABLE, msgspec.json.encode(epoch.lsn))
        return finish

    def handle_commit(self, epoch: int, commit_data: Mapping[str, Mapping[int, bytes]], ctx: OperatorContext) -> None:
        """A source whose data has ended, or that was told to stop, moves its slot on.

        One that runs does so in its stream, two epochs later: it cannot be done here while the stream is open.
        """
        for data in commit_data.get(COMMITS_TABLE, {}).values():
            try:
                advance(self._settings, msgspec.json.decode(data, type=int), ctx.task_info)
            except ArroyoError as error:
                ctx.warn(f"{error}; the server keeps more of its log than it needs to")

    def _read(self, ctx: SourceContext, epoch: CdcEpoch) -> SourceFinishType:
        message: ControlMessage | None
        while (message := self._outages.wait()) is None:
            try:
                has_ended = epoch.step()
            except InterruptedByControlError:
                message = ctx.control()
                break
            except (ExternalError, OSError) as error:
                is_stale = epoch.is_stale
                epoch.disconnect()
                if epoch.is_torn:
                    raise
                if not is_stale:
                    self._outages.failed(error)
                continue
            self._outages.succeeded()
            if has_ended:
                return SourceFinishType.FINAL
        if message is None:
            raise AssertionError("only a control message interrupts")
        return message.finish_type

    def _stand_by(self, ctx: SourceContext, collector: SourceCollector) -> SourceFinishType:
        if self._settings.ends:
            return SourceFinishType.FINAL
        collector.broadcast_watermark(Watermark.idle())
        while (message := ctx.wait(STAND_BY_SECONDS)) is None:
            pass
        return message.finish_type

    def _changes(self) -> str:
        return "inserts" if self._settings.inserts_only else "all"
