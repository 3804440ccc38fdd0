"""`mysql.cdc`: a table of MySQL or MariaDB and its changes, each exactly once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from arroyo_connectors import reader_of, snapshot_tables

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
from arroyo_core.api.updating import with_updating
from arroyo_core.errors import ExternalError
from arroyo_core.state import global_table_config
from arroyo_mysql.cdc.epoch import CdcEpoch
from arroyo_mysql.cdc.settings import CdcSettings
from arroyo_mysql.cdc.state import CdcState

if TYPE_CHECKING:
    from arroyo_core.state import TableConfig

#: How long a subtask that has nothing to read waits before it asks again.
STAND_BY_SECONDS = 1.0


class MysqlCdc(SourceOperator):
    """One subtask reads the table; the others are idle."""

    def __init__(self, settings: CdcSettings) -> None:
        self._settings = settings

    def name(self) -> str:
        return "mysql.cdc"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        stream = ArroyoSchema(self._settings.schema, self._settings.event_time_field)
        return stream if self._settings.inserts_only else with_updating(stream)

    def tables(self) -> dict[str, TableConfig]:
        return snapshot_tables() | global_table_config(OUTAGES, "since when the database fails", is_partitioned=True)

    def state_settings(self, inputs: Sequence[ArroyoSchema]) -> Mapping[str, str]:
        """What a position is of."""
        return {"table": str(self._settings.name), "changes": self._changes()}

    def emits_watermarks(self) -> bool:
        return self._settings.max_lateness_us is not None

    def display(self) -> DisplayableOperator:
        settings = self._settings
        rows = [
            ("database", settings.server.display()),
            ("table", str(settings.name)),
            ("columns", ", ".join(column.name for column in settings.columns)),
            ("key", ", ".join(column.name for column in settings.key) or "none: the snapshot is one chunk"),
            ("snapshot", settings.snapshot.value),
            ("changes", self._changes()),
            ("read by", "one subtask"),
        ]
        return DisplayableOperator(self.name(), rows)

    def datasets(self) -> Sequence[Dataset]:
        name = self._settings.name
        return [self._settings.server.dataset(name.schema, name.name)]

    def lives_on(self) -> bool:
        return True

    def on_start(self, ctx: SourceContext) -> None:
        # Every subtask takes its views, for another may read the table at the next parallelism.
        self._state = CdcState(ctx.table_manager, ctx.task_info, str(self._settings.name))
        self._outages = Outages(ctx, RetryPolicy(max_duration_s=self._settings.give_up_after_s))

    def run(self, ctx: SourceContext, collector: SourceCollector) -> SourceFinishType:
        task = ctx.task_info
        if task.task_index != reader_of(str(self._settings.name), task.parallelism):
            return self._stand_by(ctx, collector)
        epoch = CdcEpoch(self._settings, ctx, collector, self._state)
        finish = None
        try:
            finish = self._read(epoch)
        finally:
            epoch.close(finish)
        return finish

    def _read(self, epoch: CdcEpoch) -> SourceFinishType:
        message: ControlMessage | None
        while (message := self._outages.wait()) is None:
            try:
                has_ended = epoch.step()
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
