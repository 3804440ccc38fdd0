"""`CdcSource`: the base of sources that read a table and its changes, each exactly once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from arroyo_connectors.cdc.chunks import SnapshotState, reader_of, snapshot_tables
from arroyo_connectors.cdc.epoch import CdcEpoch
from arroyo_connectors.cdc.log import ChangeLog, InterruptedByControlError
from arroyo_connectors.cdc.settings import FollowSettings
from arroyo_connectors.cdc.state import CdcChunk, CdcPosition
from arroyo_core.api import (
    OUTAGES,
    ArroyoSchema,
    ControlMessage,
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

if TYPE_CHECKING:
    from arroyo_core.state import TableConfig

#: How long a subtask that has nothing to read waits before it asks again.
STAND_BY_SECONDS = 1.0

P = TypeVar("P", bound=CdcPosition)
C = TypeVar("C", bound=CdcChunk)


class CdcSource(SourceOperator, Generic[P, C]):
    """One subtask reads the table; the others are idle.

    A subclass says its `name`, what it remembers, and makes a `ChangeLog` for each epoch.
    """

    #: What it remembers: classes of their own, of which checkpoints have the fields.
    position_type: ClassVar[type[CdcPosition]]
    chunk_type: ClassVar[type[CdcChunk]]

    def __init__(self, follow: FollowSettings) -> None:
        self._follow = follow

    @abstractmethod
    def log(self, ctx: SourceContext, position: P | None) -> ChangeLog[P, C, Any, Any]:
        """What an epoch reads that begins at a position; None for the first one. Connects to nothing by itself."""

    @abstractmethod
    def database(self) -> str:
        """The database for plans, without secrets."""

    def log_fields(self) -> Sequence[tuple[str, str]]:
        """What plans show beside table and columns."""
        return ()

    def on_read(self, ctx: SourceContext, position: P | None, finish: SourceFinishType) -> None:
        """Called at the end of each epoch that has not failed, with where it ended."""
        return

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        stream = ArroyoSchema(self._follow.schema, self._follow.event_time_field)
        return stream if self._follow.inserts_only else with_updating(stream)

    def tables(self) -> dict[str, TableConfig]:
        return snapshot_tables() | global_table_config(OUTAGES, "since when the database fails", is_partitioned=True)

    def state_settings(self, inputs: Sequence[ArroyoSchema]) -> Mapping[str, str]:
        """What a position is of."""
        return {"table": self._follow.table, "changes": self._changes()}

    def emits_watermarks(self) -> bool:
        return self._follow.max_lateness_us is not None

    def display(self) -> DisplayableOperator:
        follow = self._follow
        rows = [
            ("database", self.database()),
            ("table", follow.table),
            ("columns", ", ".join(follow.schema.names)),
            ("key", ", ".join(follow.key) or "none: the snapshot is one chunk"),
            *self.log_fields(),
            ("snapshot", follow.snapshot.value),
            ("changes", self._changes()),
            ("read by", "one subtask"),
        ]
        return DisplayableOperator(self.name(), rows)

    def lives_on(self) -> bool:
        return True

    def on_start(self, ctx: SourceContext) -> None:
        # Every subtask takes its views, for another may read the table at the next parallelism.
        self._state: SnapshotState[Any, Any] = SnapshotState(
            ctx.table_manager, ctx.task_info, self._follow.table, self.position_type, self.chunk_type
        )
        self._outages = Outages(ctx, RetryPolicy(max_duration_s=self._follow.give_up_after_s))

    def run(self, ctx: SourceContext, collector: SourceCollector) -> SourceFinishType:
        task = ctx.task_info
        if task.task_index != reader_of(self._follow.table, task.parallelism):
            return self._stand_by(ctx, collector)
        log = self.log(ctx, self._state.position())
        epoch = CdcEpoch(self._follow, log, self._state, ctx, collector)
        finish = None
        try:
            finish = self._read(ctx, epoch)
        finally:
            epoch.close(finish)
        self.on_read(ctx, epoch.position, finish)
        return finish

    def _read(self, ctx: SourceContext, epoch: CdcEpoch[P, C, Any, Any]) -> SourceFinishType:
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
        if self._follow.ends:
            return SourceFinishType.FINAL
        collector.broadcast_watermark(Watermark.idle())
        while (message := ctx.wait(STAND_BY_SECONDS)) is None:
            pass
        return message.finish_type

    def _changes(self) -> str:
        return "inserts" if self._follow.inserts_only else "all"
