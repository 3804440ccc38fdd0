"""A job with state, for tests: subtasks, epochs, publication, rescale, crash and cleanup, without operators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta

import pyarrow as pa

from arroyo_core.api.hashing import subtasks_of
from arroyo_core.api.schema import ArroyoSchema
from arroyo_core.ids import TaskInfo
from arroyo_core.proto.state_pb2 import CheckpointMetadata, TableConfig
from arroyo_core.state import (
    CompactionPolicy,
    ParquetBackend,
    StorageProvider,
    TableManager,
    WarmCache,
    merge_operator_metadata,
    rows,
    timestamp_table_config,
)

Row = tuple[int, int, int]  # key, event time in microseconds, value

ROW_SCHEMA = ArroyoSchema(
    pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us", "UTC")), ("v", pa.int64())]), "ts", ("k",)
)
RETENTION_US = 10
#: Merges often and splits small, so that a short test sees every path.
EAGER_COMPACTION = CompactionPolicy(fan_in=3, level_bytes=1 << 30, max_file_rows=4)
NO_COMPACTION = CompactionPolicy(is_enabled=False)


def expiring_tables(name: str, *, generational: bool = False, schema: ArroyoSchema = ROW_SCHEMA):
    retention = timedelta(microseconds=RETENTION_US)
    return {name: timestamp_table_config(name, "rows", retention, generational, schema)}


def batch_of(values: Iterable[Row]) -> pa.RecordBatch:
    columns = list(zip(*values, strict=True)) or [(), (), ()]
    times = pa.array(columns[1], pa.int64()).cast(pa.timestamp("us", "UTC"))
    return pa.RecordBatch.from_arrays(
        [pa.array(columns[0], pa.int64()), times, pa.array(columns[2], pa.int64())], schema=ROW_SCHEMA.schema
    )


def rows_of(batch: pa.RecordBatch) -> list[Row]:
    times = batch.column("ts").cast(pa.int64()).to_pylist()
    return list(zip(batch.column("k").to_pylist(), times, batch.column("v").to_pylist(), strict=True))


class Job:
    """One operator `op` of job `job`; its subtasks run in this thread."""

    def __init__(
        self,
        storage: StorageProvider,
        tables: Mapping[str, TableConfig],
        *,
        compaction: CompactionPolicy = EAGER_COMPACTION,
        cache: WarmCache | None = None,
        lives_on: bool = False,
    ) -> None:
        self.storage = storage
        self.tables = tables
        self.compaction = compaction
        self.cache = cache
        self.lives_on = lives_on
        self.backend = ParquetBackend(storage, "job")
        self.backend.claim_generation()
        self.checkpoint: CheckpointMetadata | None = None
        self.managers: list[TableManager] = []

    @property
    def parallelism(self) -> int:
        return len(self.managers)

    @property
    def epoch(self) -> int:
        return self.checkpoint.epoch if self.checkpoint is not None else 0

    def resume(self, parallelism: int) -> None:
        """Forget everything in memory and go on from the latest published checkpoint."""
        self.checkpoint = self.backend.resolve_latest().checkpoint
        self.managers = self.open_at(self.checkpoint, parallelism)

    def open_at(self, checkpoint: CheckpointMetadata | None, parallelism: int) -> list[TableManager]:
        operator = checkpoint.operators[0] if checkpoint is not None else None
        return [
            TableManager.open(
                task_info=TaskInfo(
                    job_id="job", operator_id="op", operator_name="t.op", task_index=index, parallelism=parallelism
                ),
                tables=self.tables,
                storage=self.storage,
                checkpoint=operator,
                compaction=self.compaction,
                cache=self.cache,
                lives_on=self.lives_on,
            )
            for index in range(parallelism)
        ]

    def take(self, watermark_us: int | None = None, *, needs_commit: bool = False) -> CheckpointMetadata:
        """Checkpoint every subtask and publish the epoch."""
        epoch = self.epoch + 1
        reports = [manager.checkpoint(epoch, 1, watermark_us) for manager in self.managers]
        self.checkpoint = self.backend.publish(
            CheckpointMetadata(
                job_id="job",
                epoch=epoch,
                parent_epoch=epoch - 1,
                operators=[merge_operator_metadata(reports)],
                needs_commit=needs_commit,
            )
        )
        return self.checkpoint

    def go_on(self) -> None:
        """Begin the next epoch with the same managers, as live workers do."""
        assert self.checkpoint is not None
        for manager in self.managers:
            manager.go_on(self.checkpoint.operators[0])

    def clean(self, keep: int) -> None:
        """Keep the newest `keep` checkpoints."""
        if self.checkpoint is not None:
            self.backend.cleanup_checkpoint(self.checkpoint, 1, max(1, self.epoch - keep + 1))

    def split(self, batch: pa.RecordBatch) -> list[pa.RecordBatch]:
        """A batch by the subtask that owns each row's key, as the shuffle splits it; by the hash that tables use."""
        owners = subtasks_of(rows.hash_batch(batch, ["k"]), self.parallelism)
        return [batch.filter(pa.array(owners == index)) for index in range(self.parallelism)]
