"""A scripted life of a job: 20 epochs with compaction, cleanup, commits and rescales, each with known content."""

from __future__ import annotations

from typing import Any

from arroyo_core.api.signals import Watermark
from arroyo_core.proto.state_pb2 import CheckpointMetadata, TableConfig
from arroyo_core.state import ResolutionKind, StorageProvider, TableManager, global_table_config

from .state_job import RETENTION_US, Job, Row, batch_of, expiring_tables, rows_of

EPOCHS = 20
KEEP = 4


def life_tables() -> dict[str, TableConfig]:
    return {
        **global_table_config("offsets", "a position for each partition"),
        **global_table_config("commits", "files to commit", uses_two_phase_commit=True),
        **expiring_tables("windows"),
        **expiring_tables("latest", generational=True),
    }


def watermark_us(epoch: int) -> int:
    return epoch * 4


def new_rows(epoch: int) -> list[Row]:
    return [(key, epoch * 4 + key, epoch) for key in range(6)]


def new_latest(epoch: int) -> list[Row]:
    return [((epoch + key) % 9, epoch * 4 + 12, epoch) for key in range(4)]


def expected_at(epoch: int) -> dict[str, Any]:
    """What the tables hold after `epoch`."""
    cutoff = watermark_us(epoch) - RETENTION_US
    offsets = {}
    latest: dict[int, Row] = {}
    windows: list[Row] = []
    for past in range(1, epoch + 1):
        offsets |= {("partition", number): past * 10 + number for number in range(5)}
        offsets.pop(("partition", past % 5))
        latest |= {row[0]: row for row in new_latest(past)}
        latest.pop(past % 9, None)
        windows = [row for row in windows if row[1] >= past * 2] + new_rows(past)
        windows = [row for row in windows if row[1] >= watermark_us(past) - RETENTION_US]
    return {
        "offsets": offsets,
        "latest": sorted(row for row in latest.values() if row[1] >= cutoff),
        "windows": sorted(windows),
    }


def contents(managers: list[TableManager], epoch: int) -> dict[str, Any]:
    """What the tables hold when opened at `epoch`."""
    latest, windows = [], []
    offsets: dict[Any, Any] = managers[0].get_global_keyed_state("offsets").get_all()
    for manager in managers:
        assert manager.get_global_keyed_state("offsets").get_all() == offsets
        view = manager.get_last_key_value_table("latest")
        latest.extend(rows_of(view.get_all()))
        window = manager.get_expiring_time_key_table("windows", Watermark(watermark_us(epoch) if epoch else None))
        windows.extend(row for _, batches in window.all_batches_for_watermark() for b in batches for row in rows_of(b))
    return {"offsets": offsets, "latest": sorted(latest), "windows": sorted(windows)}


class Life:
    """Runs the script from wherever the store stands; `published` is the last epoch whose publication returned."""

    def __init__(self, storage: StorageProvider) -> None:
        self.storage = storage
        self.published = 0
        self.committed = 0
        self.job = Job(storage, life_tables())

    def run(self, until: int = EPOCHS) -> None:
        resolution = self.job.backend.resolve_latest()
        if resolution.kind is ResolutionKind.REPLAY_COMMIT:
            self.job.backend.mark_committed(resolution.checkpoint.epoch)
        self.job.resume(self.parallelism(self.job.epoch))
        while self.job.epoch < until:
            epoch = self.job.epoch + 1
            # Like the runtime: every epoch opens its tables again, at times at another parallelism.
            self.job.resume(self.parallelism(epoch))
            self.run_epoch(epoch)

    def run_epoch(self, epoch: int) -> CheckpointMetadata:
        managers = self.job.managers
        for number in range(5):
            view = managers[number % len(managers)].get_global_keyed_state("offsets")
            view.insert(("partition", number), epoch * 10 + number)
            if number == epoch % 5:
                view.remove(("partition", number))
        for manager, rows, latest, gone in zip(
            managers,
            self.job.split(batch_of(new_rows(epoch))),
            self.job.split(batch_of(new_latest(epoch))),
            self.job.split(batch_of([(epoch % 9, 0, 0)])),
            strict=True,
        ):
            window = manager.get_expiring_time_key_table("windows")
            window.expire_before(epoch * 2)
            window.insert_batch(rows)
            view = manager.get_last_key_value_table("latest")
            view.upsert(latest)
            view.delete(gone)
            manager.insert_committing_data("commits", f"{epoch}".encode())
        metadata = self.job.take(watermark_us(epoch), needs_commit=True)
        self.published = epoch
        self.job.backend.mark_committed(epoch)
        self.committed = epoch
        if epoch % 3 == 0:
            self.job.clean(KEEP)
        return metadata

    @staticmethod
    def parallelism(epoch: int) -> int:
        return 1 + (epoch // 5) % 3
