"""Metadata of a checkpoint names files of its own job only, whoever wrote it."""

from __future__ import annotations

import pytest
from arroyo_jobs.checkpoints.verification import Verifier

from arroyo_core.errors import RetryHint, UnsafePathError, retry_hint
from arroyo_core.proto.state_pb2 import CheckpointMetadata
from arroyo_core.state import StorageProvider, paths
from arroyo_core.state.envelope import seal, unseal
from arroyo_core.state.fork import ForkSource, find_checkpoint

from .support.state_life import Life

EPOCH = 3


@pytest.fixture
def life(tmp_path):
    life = Life(StorageProvider(str(tmp_path / "state")))
    life.run(EPOCH)
    return life


def forge(life: Life, path: str) -> None:
    """Let the newest checkpoint refer to another path."""
    storage, name = life.job.backend.storage, paths.checkpoint_metadata("job", EPOCH)
    metadata = unseal(storage.read(name), CheckpointMetadata, name=name)
    tables = metadata.operators[0].table_checkpoint_metadata.values()
    next(file for table in tables for file in table.global_keyed.files).path = path
    storage.write(name, seal(metadata))


@pytest.mark.parametrize(
    "path",
    [
        "../victim.parquet",
        "/etc/passwd",
        "other/checkpoints/1/table-a-b-0-aa.parquet",
        "job/generations/1.claim",
        "job/checkpoints/../../other/checkpoints/1/table-a-b-0-aa.parquet",
        "s3://bucket/table.parquet",
    ],
)
def test_files_outside_of_the_jobs_checkpoints_are_refused(life, path):
    forge(life, path)
    with pytest.raises(UnsafePathError) as raised:
        life.job.backend.resolve_latest()
    assert retry_hint(raised.value) is RetryHint.NO_RETRY
    with pytest.raises(UnsafePathError):
        find_checkpoint(
            ForkSource(url=life.job.backend.storage.url, job_id="job"), job_id="new", is_committed_only=False
        )
    assert "path" in Verifier(life.job.backend).verify(EPOCH).problems[0]
