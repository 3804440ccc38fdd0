"""The publication protocol as pure decisions over facts already read; `parquet.py` does the I/O.

- A driver claims the next generation before it does anything; the greatest claim owns the job.
- A claim names the job's incarnation, and keeps that of the claim before it as long as there are checkpoints.
- An epoch exists from the moment its checkpoint metadata is created, and creating it is put-if-absent:
  of all attempts at an epoch, of whatever generation, exactly one is published.
- An epoch that needs a commit is ready when its committed marker exists; until then whoever owns the
  job replays the commit.
- Files of an epoch that has no checkpoint metadata are orphans, to be collected once a later epoch exists.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from arroyo_core.proto.state_pb2 import CheckpointMetadata
from arroyo_core.state import paths
from arroyo_core.state.merge import needed_files


@dataclass(frozen=True, slots=True)
class JobFacts:
    """What a listing of a job's prefix says."""

    #: Epochs with checkpoint metadata.
    published: frozenset[int] = frozenset()
    #: Epochs with a committed marker.
    committed: frozenset[int] = frozenset()
    #: Epochs with files of any kind.
    present: frozenset[int] = frozenset()
    generations: frozenset[int] = frozenset()
    #: Incarnations that have published a checkpoint, which may be gone.
    incarnations: frozenset[str] = frozenset()
    files: tuple[str, ...] = field(default=(), repr=False)


class ResolutionKind(StrEnum):
    """What a driver does with the latest checkpoint when it starts."""

    #: There is none: begin with epoch 1.
    FRESH = "fresh"
    #: Restore it.
    READY = "ready"
    #: Restore it, and commit it again before anything else: it may or may not have been committed.
    REPLAY_COMMIT = "replay_commit"


@dataclass(frozen=True, slots=True)
class Resolution:
    """The latest checkpoint and what to do with it."""

    kind: ResolutionKind
    checkpoint: CheckpointMetadata | None = None
    #: Epochs with files but without a checkpoint: attempts that were never published.
    orphaned_epochs: tuple[int, ...] = ()
    #: Epochs after `checkpoint` that are damaged and were passed over, on explicit request only.
    skipped_epochs: tuple[int, ...] = ()

    @property
    def next_epoch(self) -> int:
        """The number of the epoch to run."""
        past = self.checkpoint.epoch if self.checkpoint is not None else 0
        return max((past, *self.skipped_epochs)) + 1


class PublicationKind(StrEnum):
    """What becomes of an attempt to publish."""

    PUBLISHED = "published"
    #: Another attempt of this or an older generation was first: resolve again and go on from there.
    TAKEN = "taken"
    #: A newer generation owns the job: stop.
    FENCED = "fenced"


def derive_job_facts(job_id: str, files: Iterable[str]) -> JobFacts:
    """Sort the paths of a job's listing into facts; foreign files are ignored."""
    published, committed, present, generations, incarnations = set(), set(), set(), set(), set()
    listed = tuple(files)
    for path in listed:
        epoch = paths.epoch_of(job_id, path)
        if epoch is not None:
            present.add(epoch)
            if path == paths.checkpoint_metadata(job_id, epoch):
                published.add(epoch)
            elif path == paths.committed_marker(job_id, epoch):
                committed.add(epoch)
        generation = paths.generation_of(job_id, path)
        if generation is not None:
            generations.add(generation)
        incarnation = paths.incarnation_of(job_id, path)
        if incarnation is not None:
            incarnations.add(incarnation)
    return JobFacts(
        published=frozenset(published),
        committed=frozenset(committed),
        present=frozenset(present),
        generations=frozenset(generations),
        incarnations=frozenset(incarnations),
        files=listed,
    )


def derive_next_generation(facts: JobFacts, newest: CheckpointMetadata | None = None) -> int:
    """One more than any that was claimed; claims may be gone that the newest checkpoint still knows of."""
    return max(facts.generations | {newest.generation if newest is not None else 0}) + 1


def derive_incarnation(facts: JobFacts, *, claimed: str, recorded: str) -> str | None:
    """The incarnation that goes on, of those of the newest claim and the newest checkpoint; None for another one.

    Either may be empty, as in state of before there were incarnations.
    """
    if facts.published:
        # Where the two differ somebody has put parts of two lives together, and either may have used the next numbers.
        return None if claimed and recorded and claimed != recorded else claimed or recorded or None
    # Without checkpoints numbers start over: only for an incarnation that never had any nothing comes twice.
    return claimed if claimed and claimed not in facts.incarnations else None


def resolve_candidates(facts: JobFacts) -> list[int]:
    """The epochs to try to restore, best first."""
    return sorted(facts.published, reverse=True)


def resolve_checkpoint(
    facts: JobFacts, checkpoint: CheckpointMetadata | None, skipped: Collection[int] = ()
) -> Resolution:
    """What to do with the newest checkpoint that could be read."""
    orphaned = tuple(sorted(facts.present - facts.published))
    if checkpoint is None:
        return Resolution(ResolutionKind.FRESH, None, orphaned, tuple(sorted(skipped)))
    is_ready = not checkpoint.needs_commit or checkpoint.epoch in facts.committed
    kind = ResolutionKind.READY if is_ready else ResolutionKind.REPLAY_COMMIT
    return Resolution(kind, checkpoint, orphaned, tuple(sorted(skipped)))


def decide_publication(
    mine: CheckpointMetadata, *, newest_generation: int, existing: CheckpointMetadata | None
) -> PublicationKind:
    """Judge an attempt by the newest claim and by what the epoch's file holds, if anything."""
    if existing is not None and existing.attempt_id == mine.attempt_id:
        return PublicationKind.PUBLISHED
    if newest_generation > mine.generation or (existing is not None and existing.generation > mine.generation):
        return PublicationKind.FENCED
    return PublicationKind.PUBLISHED if existing is None else PublicationKind.TAKEN


@dataclass(frozen=True, slots=True)
class CleanupPlan:
    """What may go, in the order in which it must: metadata of old checkpoints before data.

    A crash between two deletes then leaves whole checkpoints and orphans, never a broken checkpoint.
    """

    metadata: tuple[str, ...]
    data: tuple[str, ...]


def plan_cleanup(
    job_id: str,
    facts: JobFacts,
    kept: Mapping[int, CheckpointMetadata],
    *,
    new_min_epoch: int,
    last_epoch: int | None = None,
) -> CleanupPlan:
    """Classify every file of a job.

    `kept` holds the metadata of every published epoch from `new_min_epoch` on. Whatever they refer
    to stays, and so does everything of epochs after the latest: an attempt may be writing there.
    `last_epoch` is one that was published before the listing began. A listing takes its time, and may have missed a
    later epoch that was published meanwhile though it found the one after: nothing after `last_epoch` goes.
    """
    missing = {epoch for epoch in facts.published if epoch >= new_min_epoch} - set(kept)
    if missing:
        raise ValueError(f"cleanup needs the metadata of kept epochs {sorted(missing)}")
    latest = max(facts.published, default=0)
    if new_min_epoch > latest:
        raise ValueError(f"cleanup up to epoch {new_min_epoch} would delete the latest checkpoint, {latest}")
    latest = latest if last_epoch is None else min(latest, last_epoch)
    protected = {path for metadata in kept.values() for path in referenced_paths(metadata)}
    metadata: list[tuple[int, int, str]] = []
    data: list[tuple[int, str]] = []
    for path in facts.files:
        epoch = paths.epoch_of(job_id, path)
        if epoch is None or epoch > latest or path in protected:
            continue
        if path in (paths.checkpoint_metadata(job_id, epoch), paths.committed_marker(job_id, epoch)):
            if epoch < new_min_epoch:
                # A marker goes after its checkpoint: alone it means nothing, its absence a replay.
                metadata.append((epoch, int(path.endswith(paths.COMMITTED_FILE)), path))
        elif paths.is_data(path) or epoch not in kept or (paths.is_unfinished(path) and epoch < latest):
            data.append((epoch, path))
    generations = sorted(
        (generation, path)
        for path in facts.files
        for generation in (
            paths.generation_of(job_id, path),
            paths.stopped_generation_of(job_id, path),
            paths.rescaled_generation_of(job_id, path),
            paths.described_generation_of(job_id, path),
        )
        if generation is not None and generation < max(facts.generations)
    )
    return CleanupPlan(
        tuple(path for _, _, path in sorted(metadata)),
        (*(path for _, path in sorted(data)), *(path for _, path in generations)),
    )


def referenced_paths(metadata: CheckpointMetadata) -> set[str]:
    """Every data file that a checkpoint needs."""
    return set(referenced_sizes(metadata))


def referenced_sizes(metadata: CheckpointMetadata) -> dict[str, int]:
    """Every data file that a checkpoint needs, with what sinks staged for its commit, and its bytes."""
    return {
        file.path: file.size_bytes
        for operator in metadata.operators
        for table in operator.table_checkpoint_metadata.values()
        for file in needed_files(table)
    }
