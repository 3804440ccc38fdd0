"""Opens an operator's state tables for an epoch, and checkpoints them at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor

from arroyo_core.api import (
    ArrowOperator,
    ArroyoSchema,
    CheckpointBarrier,
    Clock,
    SourceOperator,
    SystemClock,
    TaskInfo,
)
from arroyo_core.proto.state_pb2 import OperatorCheckpointMetadata, TableConfig
from arroyo_core.runtime.context import RuntimeContext
from arroyo_core.state import StorageProvider, TableManager, WarmCache, get_storage_provider


def declared_tables(operator: ArrowOperator | SourceOperator, inputs: Sequence[ArroyoSchema]) -> dict[str, TableConfig]:
    """The tables of an operator for inputs of these types."""
    return operator.tables() if isinstance(operator, SourceOperator) else operator.tables(inputs)


class OperatorTables:
    """The tables of one operator of one subtask."""

    def __init__(self, manager: TableManager, *, has_tables: bool) -> None:
        self.manager = manager
        self._has_tables = has_tables
        self.ctx: RuntimeContext | None = None

    def start_compaction(self, epoch: int) -> None:
        """Merge old files beside the epoch, rather than at its end."""
        self.manager.start_compaction(epoch)

    def go_on(self, checkpoint: bytes | None) -> None:
        """Be open for one more epoch, after the one that ended with `checkpoint`."""
        if self._has_tables:
            self.manager.go_on(OperatorCheckpointMetadata.FromString(checkpoint or b""))

    def begin_early(self) -> None:
        """Be open for rows of one more epoch before it is known what the last one came to; `go_on` comes later."""
        self.manager.begin_early()

    @property
    def waits_for_others(self) -> bool:
        """Whether the next epoch cannot begin before it is known what other subtasks have written in this one."""
        return self.manager.waits_for_others

    def checkpoint(self, barrier: CheckpointBarrier, *, is_last: bool = False) -> bytes:
        """Write this epoch's change; returns the metadata to report, nothing for an operator without tables.

        With `is_last` all input has ended: no later epoch needs the tables.
        """
        return self.begin_checkpoint(barrier, is_last=is_last)()

    def begin_checkpoint(self, barrier: CheckpointBarrier, *, is_last: bool = False) -> Callable[[], bytes]:
        """Take this epoch's change; what it returns waits until all is stored, and gives what `checkpoint` does."""
        if not self._has_tables:
            return lambda: b""
        watermark = self.ctx.last_present_watermark() if self.ctx is not None else None
        complete = self.manager.begin_checkpoint(
            barrier.epoch, barrier.min_epoch, watermark, barrier.then_stop, is_last=is_last
        )
        if self.ctx is not None:
            self.ctx.metrics.cache_bytes = self.manager.cache_bytes()
        return lambda: complete().SerializeToString()


class TableOpener:
    """Where the state of a job is, and what it was at the end of the last epoch."""

    def __init__(
        self,
        url: str,
        checkpoints: Mapping[str, bytes],
        *,
        cache: WarmCache | None = None,
        pool: Executor | None = None,
        is_concurrent: bool = False,
        incarnation: str = "",
        clock: Clock | None = None,
        is_first: bool = False,
        is_sealed: bool = False,
    ) -> None:
        self._storage: StorageProvider = get_storage_provider(url)
        self._checkpoints = checkpoints
        self._cache = cache
        self._pool = pool
        self._is_concurrent = is_concurrent
        self._incarnation = incarnation
        self._clock = clock or SystemClock()
        self._is_first = is_first
        self._is_sealed = is_sealed

    def open(
        self,
        operator: ArrowOperator | SourceOperator,
        task: TaskInfo,
        inputs: Sequence[ArroyoSchema],
        *,
        lives_on: bool = False,
    ) -> OperatorTables:
        """With `lives_on` they may go on after a checkpoint."""
        tables = declared_tables(operator, inputs)
        data = self._checkpoints.get(task.operator_id)
        checkpoint = OperatorCheckpointMetadata.FromString(data) if data else None
        manager = TableManager.open(
            task_info=task,
            tables=tables,
            storage=self._storage,
            checkpoint=checkpoint,
            cache=self._cache,
            pool=self._pool,
            is_concurrent=self._is_concurrent,
            incarnation=self._incarnation,
            now_us=self._clock.now_us,
            reads_storage=self._is_first,
            is_sealed=self._is_sealed,
            lives_on=lives_on,
        )
        return OperatorTables(manager, has_tables=bool(tables))
