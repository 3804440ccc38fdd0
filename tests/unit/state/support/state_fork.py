"""Forks the job of a scripted life into another store, and lets both live on."""

from __future__ import annotations

from arroyo_core.proto.state_pb2 import CheckpointMetadata
from arroyo_core.state import ParquetBackend, StorageProvider
from arroyo_core.state.fork import FoundCheckpoint, copy_files, rewrite_checkpoint
from arroyo_core.state.protocol import referenced_paths

from .state_life import EPOCHS, Life, contents, expected_at


def fork(life: Life, target: StorageProvider) -> CheckpointMetadata:
    """Publish the latest checkpoint of `life` as the first one of a job of the same name in `target`."""
    checkpoint = life.job.backend.resolve_latest().checkpoint
    assert checkpoint is not None
    found = FoundCheckpoint(backend=life.job.backend, checkpoint=checkpoint, is_committed=True)
    names = {path.rpartition("/")[2] for path in referenced_paths(checkpoint)}
    copied = copy_files(checkpoint, life.storage, target, job_id="job", only=names)
    assert copied == sum(life.storage.size(path) for path in referenced_paths(checkpoint))
    backend = ParquetBackend(target, "job")
    backend.claim_generation()
    published = backend.publish(rewrite_checkpoint(checkpoint, job_id="job", origin=found.origin))
    backend.prepare_checkpoint_load(published)
    return published


def check_both_live_on(life: Life, forked: Life, until: int = EPOCHS) -> None:
    """Each goes on from where it is, with its own compactions and cleanups, to the content the script says."""
    for each in (life, forked):
        each.run(until)
        checkpoint = each.job.backend.resolve_latest().checkpoint
        assert contents(each.job.open_at(checkpoint, 2), until) == expected_at(until)
