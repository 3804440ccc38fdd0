"""Publication, fencing, resolution and cleanup: pure decisions, and the backend that follows them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.errors import RetryHint, StateError, retry_hint
from arroyo_core.proto.state_pb2 import (
    CheckpointMetadata,
    GlobalKeyedTableTaskCheckpointMetadata,
    OperatorCheckpointMetadata,
    StateFile,
    TableCheckpointMetadata,
    TableType,
)
from arroyo_core.state import (
    EpochTakenError,
    FencedError,
    ParquetBackend,
    ResolutionKind,
    StorageProvider,
    global_table_config,
    paths,
)
from arroyo_core.state.protocol import (
    PublicationKind,
    decide_publication,
    derive_job_facts,
    derive_next_generation,
    plan_cleanup,
    referenced_paths,
    resolve_checkpoint,
)

from .support.state_job import Job


@pytest.fixture
def storage(tmp_path):
    return StorageProvider(str(tmp_path))


def checkpoint(epoch, *, generation=0, attempt=b"", needs_commit=False, files=()):
    table = TableCheckpointMetadata(
        table_type=TableType.GLOBAL_KEY_VALUE,
        global_keyed=GlobalKeyedTableTaskCheckpointMetadata(files=[StateFile(path=path) for path in files]),
    )
    return CheckpointMetadata(
        job_id="job",
        epoch=epoch,
        generation=generation,
        attempt_id=attempt,
        needs_commit=needs_commit,
        operators=[OperatorCheckpointMetadata(table_checkpoint_metadata={"t": table})],
    )


def test_stale_generation_cannot_claim_an_epoch(storage):
    old, new = ParquetBackend(storage, "job"), ParquetBackend(storage, "job")
    assert (old.claim_generation(), new.claim_generation()) == (1, 2)
    with pytest.raises(FencedError, match="generation 2 owns the job now; this driver must stop") as caught:
        old.publish(CheckpointMetadata(job_id="job", epoch=1))
    assert retry_hint(caught.value) is RetryHint.NO_RETRY
    assert old.resolve_latest().kind is ResolutionKind.FRESH
    new.publish(CheckpointMetadata(job_id="job", epoch=1))


def test_an_epoch_is_published_once(storage):
    first, second = ParquetBackend(storage, "job"), ParquetBackend(storage, "job")
    published = first.publish(CheckpointMetadata(job_id="job", epoch=1))
    with pytest.raises(EpochTakenError, match="epoch 1 was published by another attempt"):
        second.publish(CheckpointMetadata(job_id="job", epoch=1))
    assert first.load_checkpoint_metadata("job", 1) == published


def test_publishing_the_same_attempt_again_changes_nothing(storage):
    backend = ParquetBackend(storage, "job")
    published = backend.publish(CheckpointMetadata(job_id="job", epoch=1))
    assert backend.publish(published) == published


def test_a_checkpoint_that_needs_a_commit_is_replayed_until_it_is_marked(storage):
    backend = ParquetBackend(storage, "job")
    backend.publish(CheckpointMetadata(job_id="job", epoch=1, needs_commit=True))
    assert backend.resolve_latest().kind is ResolutionKind.REPLAY_COMMIT
    backend.mark_committed(1)
    backend.mark_committed(1)
    assert backend.resolve_latest().kind is ResolutionKind.READY
    assert backend.is_committed(1)


def test_an_epoch_that_was_never_published_cannot_be_committed(storage):
    with pytest.raises(StateError, match="epoch 3 was never published"):
        ParquetBackend(storage, "job").mark_committed(3)


def test_files_without_a_checkpoint_are_orphans_of_their_epoch(storage):
    job = Job(storage, global_table_config("t", "x"))
    job.resume(1)
    job.managers[0].get_global_keyed_state("t").insert("a", 1)
    job.managers[0].checkpoint(1, 1, None)
    resolution = job.backend.resolve_latest()
    assert resolution.kind is ResolutionKind.FRESH
    assert resolution.orphaned_epochs == (1,)
    assert resolution.next_epoch == 1


def test_load_operator_metadata_gives_the_operator_or_none(storage):
    job = Job(storage, global_table_config("t", "x"))
    job.resume(2)
    job.take()
    assert job.backend.load_operator_metadata("job", "op", 1) == job.checkpoint.operators[0]
    assert job.backend.load_operator_metadata("job", "other", 1) is None


def test_cleanup_refuses_to_delete_the_latest_checkpoint(storage):
    job = Job(storage, global_table_config("t", "x"))
    job.resume(1)
    job.take()
    with pytest.raises(StateError, match="cannot clean up"):
        job.backend.cleanup_checkpoint(job.checkpoint, 1, 2)


def test_ids_cannot_leave_their_folder():
    assert paths.operator_metadata("a/b", 1, "../c", 0) == "a%2Fb/checkpoints/1/operator-..%2Fc-0.metadata"
    assert paths.job_folder("..") == "%2E%2E"
    assert paths.decode_id(paths.encode_id("a/b ü%.")) == "a/b ü%."


@pytest.mark.parametrize(
    ("mine", "newest", "existing", "expected"),
    [
        ((3, b"a"), 3, None, PublicationKind.PUBLISHED),
        ((3, b"a"), 4, None, PublicationKind.FENCED),
        ((3, b"a"), 3, (3, b"a"), PublicationKind.PUBLISHED),
        ((3, b"a"), 4, (3, b"a"), PublicationKind.PUBLISHED),
        ((3, b"a"), 3, (2, b"b"), PublicationKind.TAKEN),
        ((3, b"a"), 3, (3, b"b"), PublicationKind.TAKEN),
        ((3, b"a"), 3, (4, b"b"), PublicationKind.FENCED),
    ],
)
def test_who_may_publish(mine, newest, existing, expected):
    found = checkpoint(1, generation=existing[0], attempt=existing[1]) if existing else None
    attempt = checkpoint(1, generation=mine[0], attempt=mine[1])
    assert decide_publication(attempt, newest_generation=newest, existing=found) is expected


def test_resolution_numbers_the_next_epoch_after_what_was_skipped():
    facts = derive_job_facts("job", [paths.checkpoint_metadata("job", epoch) for epoch in (1, 2, 3)])
    resolution = resolve_checkpoint(facts, checkpoint(1), skipped=[3, 2])
    assert (resolution.next_epoch, resolution.skipped_epochs) == (4, (2, 3))


def test_generations_only_grow():
    claims = [paths.generation_claim("job", number) for number in (1, 2, 10)]
    assert derive_next_generation(derive_job_facts("job", [*claims, "job/generations/x.claim"])) == 11


def test_cleanup_leaves_an_epoch_that_its_listing_came_too_early_for():
    """Epoch 5 was published after its folder was listed, and epoch 6 before its own was."""
    only_five = "job/checkpoints/5/table-op-t-0-1.parquet"
    old = "job/checkpoints/4/table-op-t-0-1.parquet"
    metadata = [paths.checkpoint_metadata("job", epoch) for epoch in (4, 6)]
    facts = derive_job_facts("job", [old, only_five, *metadata])
    kept = {epoch: checkpoint(epoch, files=[]) for epoch in (4, 6)}
    plan = plan_cleanup("job", facts, kept, new_min_epoch=4, last_epoch=4)
    assert (plan.metadata, plan.data) == ((), (old,))


@given(
    referenced=st.dictionaries(st.integers(1, 8), st.sets(st.tuples(st.integers(1, 8), st.integers(0, 2)))),
    present=st.sets(st.tuples(st.integers(1, 10), st.integers(0, 2))),
    cut=st.integers(1, 8),
)
def test_cleanup_never_touches_what_a_kept_checkpoint_needs(referenced, present, cut):
    if not referenced:
        return
    new_min_epoch = min(cut, max(referenced))
    data = {f"job/checkpoints/{epoch}/table-op-t-0-{number}.parquet" for epoch, number in present}
    needed = {
        epoch: [f"job/checkpoints/{e}/table-op-t-0-{n}.parquet" for e, n in files]
        for epoch, files in referenced.items()
    }
    files = data | {path for paths_ in needed.values() for path in paths_}
    files |= {paths.checkpoint_metadata("job", epoch) for epoch in referenced}
    files |= {paths.committed_marker("job", epoch) for epoch in referenced}
    kept = {epoch: checkpoint(epoch, files=needed[epoch]) for epoch in referenced if epoch >= new_min_epoch}
    plan = plan_cleanup("job", derive_job_facts("job", files), kept, new_min_epoch=new_min_epoch)
    deleted = {*plan.metadata, *plan.data}
    latest = max(referenced)
    for epoch, metadata in kept.items():
        assert not deleted & referenced_paths(metadata)
        assert paths.checkpoint_metadata("job", epoch) not in deleted
        assert paths.committed_marker("job", epoch) not in deleted
    protected = {path for metadata in kept.values() for path in referenced_paths(metadata)}
    for path in data - protected:
        assert (path in deleted) == (paths.epoch_of("job", path) <= latest)
    assert {path for path in deleted if path.endswith("metadata")} == {
        paths.checkpoint_metadata("job", epoch) for epoch in referenced if epoch < new_min_epoch
    }
