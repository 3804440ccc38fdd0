"""State written by the first version of the format is restored, at any parallelism, from now on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from arroyo_core.state import StorageProvider

from .support.state_job import Job
from .support.state_life import Life, contents, expected_at, life_tables

FIXTURE = Path(__file__).parent / "fixtures/format-1"
EPOCH = 7


@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_state_of_format_1_is_restored(tmp_path, parallelism):
    shutil.copytree(FIXTURE, tmp_path / "store")
    job = Job(StorageProvider(str(tmp_path / "store")), life_tables())
    for epoch in job.backend.list_epochs():
        checkpoint = job.backend.load_checkpoint_metadata("job", epoch)
        assert contents(job.open_at(checkpoint, parallelism), epoch) == expected_at(epoch)
    assert job.backend.resolve_latest().checkpoint.epoch == EPOCH


def test_a_job_goes_on_from_format_1(tmp_path):
    shutil.copytree(FIXTURE, tmp_path / "store")
    life = Life(StorageProvider(str(tmp_path / "store")))
    life.run(EPOCH + 4)
    assert contents(life.job.open_at(life.job.checkpoint, 2), EPOCH + 4) == expected_at(EPOCH + 4)
