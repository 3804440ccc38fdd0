"""A crash at every write of a job's life: a whole checkpoint remains, never older than the last published."""

from __future__ import annotations

import pytest

from arroyo_core.state import ResolutionKind, StorageProvider, paths
from arroyo_core.state.protocol import referenced_paths

from .support.recording import DictDriver, RecordingDriver, dict_storage
from .support.state_life import EPOCHS, Life, contents, expected_at


@pytest.fixture(scope="module")
def recorded():
    life = None
    driver = RecordingDriver(lambda: life.published if life else 0)
    life = Life(StorageProvider("dict://", driver=driver))
    life.run()
    return driver


def test_the_script_ends_with_what_the_model_says(recorded):
    storage = dict_storage(recorded.files)
    life = Life(storage)
    checkpoint = life.job.backend.resolve_latest().checkpoint
    assert contents(life.job.open_at(checkpoint, 3), EPOCHS) == expected_at(EPOCHS)
    assert any(
        file.compaction_generation > 0
        for table in checkpoint.operators[0].table_checkpoint_metadata.values()
        for file in (*table.global_keyed.files, *table.expiring_keyed_time.files)
    )


def test_a_crash_at_any_write_leaves_the_last_published_checkpoint_whole(recorded):
    tried = 0
    verified: set[tuple[int, frozenset[str]]] = set()
    for point in recorded.points:
        life = Life(dict_storage(point.files))
        resolution = life.job.backend.resolve_latest()
        epoch = resolution.checkpoint.epoch if resolution.checkpoint is not None else 0
        assert point.published <= epoch <= point.published + 1, point.name
        assert resolution.kind in (ResolutionKind.READY, ResolutionKind.REPLAY_COMMIT) or epoch == 0, point.name
        needed = referenced_paths(resolution.checkpoint) if epoch else set()
        assert all(path in point.files for path in needed), point.name
        # Data files are never written twice, so one look at the content of each checkpoint is enough.
        if (epoch, frozenset(needed)) not in verified:
            verified.add((epoch, frozenset(needed)))
            assert contents(life.job.open_at(resolution.checkpoint, 2), epoch) == expected_at(epoch), point.name
        tried += 1
    print(f"\n{tried} crash points tried, {len(verified)} checkpoints restored")
    assert tried >= 500
    assert len(verified) == EPOCHS + 1


def test_a_job_goes_on_after_a_crash_and_collects_what_the_crash_left(recorded):
    # Every write is tried above; going on takes longer, so every 97th is, which visits all kinds.
    points = recorded.points[::97]
    assert {point.name.split()[1] for point in points} == {"write", "create", "delete"}
    for point in points:
        driver = DictDriver(point.files)
        life = Life(StorageProvider("dict://", driver=driver))
        first = life.job.backend.resolve_latest().next_epoch
        life.run(min(EPOCHS, first + 2))
        life.job.resume(2)
        assert contents(life.job.managers, life.job.epoch) == expected_at(life.job.epoch), point.name
        life.job.take(None)
        life.job.clean(1)
        needed = referenced_paths(life.job.checkpoint)
        data = {path for path in driver.files if path.endswith(".parquet")}
        assert data == needed, point.name
        past = [path for path in driver.files if (paths.epoch_of("job", path) or 0) not in (0, life.job.epoch)]
        assert set(past) <= needed, point.name
