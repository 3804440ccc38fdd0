"""A forked job lives on with compaction, rescales and cleanup, beside the job it came from."""

from __future__ import annotations

import pytest

from arroyo_core.state import EpochTakenError, StorageProvider

from .support.state_fork import check_both_live_on, fork
from .support.state_life import Life, contents, expected_at


@pytest.fixture
def stores(tmp_path):
    return StorageProvider(str(tmp_path / "one")), StorageProvider(str(tmp_path / "two"))


@pytest.mark.parametrize("epoch", [1, 6, 13])
def test_a_fork_has_the_state_and_both_jobs_live_on(stores, epoch):
    life = Life(stores[0])
    life.run(epoch)
    published = fork(life, stores[1])
    forked = Life(stores[1])
    assert published.epoch == epoch
    assert contents(forked.job.open_at(published, 3), epoch) == expected_at(epoch)
    check_both_live_on(life, forked)


def test_copying_twice_is_harmless(stores):
    life = Life(stores[0])
    life.run(6)
    fork(life, stores[1])
    before = {file.path: stores[1].read(file.path) for file in stores[1].list("job/checkpoints")}
    with pytest.raises(EpochTakenError, match="was published by another attempt"):
        fork(life, stores[1])
    assert {file.path: stores[1].read(file.path) for file in stores[1].list("job/checkpoints")} == before
