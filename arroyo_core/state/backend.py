"""`ParquetBackend`: checkpoints of one job on object storage."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

from arroyo_core.errors import StateError, UnsafePathError
from arroyo_core.proto.state_pb2 import (
    CheckpointMetadata,
    CommittedMarker,
    GenerationClaim,
    OperatorCheckpointMetadata,
)
from arroyo_core.state import paths
from arroyo_core.state.backing_store import BackingStore
from arroyo_core.state.envelope import seal
from arroyo_core.state.exclusive import require_exclusive_create
from arroyo_core.state.failures import (
    DamagedStateError,
    EpochTakenError,
    FencedError,
    MissingFileError,
    SealKeyError,
)
from arroyo_core.state.limits import read_metadata
from arroyo_core.state.markers import check_marker, create_marker
from arroyo_core.state.merge import needed_files, operators_by_id
from arroyo_core.state.metadata_size import check_metadata_size
from arroyo_core.state.ownership import Ownership
from arroyo_core.state.protocol import (
    CleanupPlan,
    JobFacts,
    PublicationKind,
    Resolution,
    decide_publication,
    derive_job_facts,
    plan_cleanup,
    referenced_sizes,
    resolve_candidates,
    resolve_checkpoint,
)
from arroyo_core.state.seals import Seals
from arroyo_core.state.storage import StorageProvider, StoredFile

#: At every so many epochs, all files that an epoch refers to are looked for, and not only its own.
LOOK_AT_ALL_EPOCHS = 64


class ParquetBackend(BackingStore):
    """Parquet data and protobuf metadata below `{checkpoint_url}/{job_id}`.

    One instance serves one driver or one subtask. A driver calls `claim_generation` first, then
    `resolve_latest`, then for each epoch `publish` and, when sinks committed, `mark_committed`.
    Where there are no `seals` they are those of the environment.
    """

    #: How many claims or listings may be outrun by another driver before giving up.
    _CLAIM_ATTEMPTS: ClassVar[int] = 100

    def __init__(
        self,
        storage: StorageProvider,
        job_id: str,
        *,
        seals: Seals | None = None,
        now_us: Callable[[], int] = lambda: time.time_ns() // 1000,
    ) -> None:
        self.storage = storage
        self.seals = seals if seals is not None else Seals.from_environment()
        self.job_id = job_id
        self.generation = 0
        #: That of the claim; empty before it.
        self.incarnation = ""
        self._now_us = now_us
        self._ownership = Ownership(storage, job_id, seals=self.seals, now_us=now_us)
        #: The epoch that was published last, and its `attempt_id`.
        self._published = (0, b"")

    @classmethod
    def name(cls) -> str:
        return "parquet"

    def claim_generation(self) -> int:
        """Become the owner of the job; every driver with an older generation can publish and commit no more.

        Of drivers that claim at once each gets a generation of its own, and all get one incarnation. Raises
        `UnsafeStorageError` before a job's first claim if the store cannot create exclusively, and `SealError` for who
        has not the key of the job.
        """
        for _ in range(self._CLAIM_ATTEMPTS):
            facts = self._facts()
            if facts.incarnations and not facts.published:
                # The first checkpoint may have come while that was listed. Its marker comes after it: a listing that
                # begins now has both, unless somebody has removed the checkpoint.
                facts = self._facts()
            if not facts.generations:
                # The first claim: from here on all fencing rests on it.
                require_exclusive_create(self.storage)
            claim = self._ownership.take(facts, self._newest_readable(facts))
            if claim is not None:
                self.generation, self.incarnation = claim.generation, claim.incarnation
                return claim.generation
        raise StateError(f"job {self.job_id!r}: {self._CLAIM_ATTEMPTS} times another driver claimed a generation first")

    def resolve_latest(self, job_id: str | None = None, *, allow_fallback: bool = False) -> Resolution:
        """The checkpoint to go on from.

        A damaged latest checkpoint is an error that names the newest one that is whole: going back
        repeats what sinks have committed since. `allow_fallback` goes back all the same.
        """
        if job_id is not None and job_id != self.job_id:
            raise StateError(f"this backend keeps job {self.job_id!r}, not {job_id!r}")
        facts = self._facts()
        skipped: list[int] = []
        for epoch in resolve_candidates(facts):
            try:
                checkpoint = self.load_checkpoint_metadata(self.job_id, epoch)
                self.prepare_checkpoint_load(checkpoint)
            except MissingFileError:
                # Deleted between the listing and the read: only a cleanup does that, and only to old epochs.
                continue
            except DamagedStateError as error:
                if not allow_fallback or isinstance(error, SealKeyError):
                    raise type(error)(f"{error}; {self._whole_checkpoint_before(facts, epoch)}") from error
                skipped.append(epoch)
                continue
            return resolve_checkpoint(facts, checkpoint, skipped)
        return resolve_checkpoint(facts, None, skipped)

    def read_claim(self, generation: int) -> GenerationClaim:
        """What the driver of a generation claimed; raises `MissingFileError` and `DamagedStateError`."""
        return self._ownership.read_claim(generation)

    def prepare_checkpoint_load(self, metadata: CheckpointMetadata) -> None:
        check_marker(self.storage, self.seals, metadata)
        sizes = {file.path: file.size_bytes for epoch in self._epochs_of(metadata) for file in self._list_epoch(epoch)}
        for operator in metadata.operators:
            for name, table in operator.table_checkpoint_metadata.items():
                for file in needed_files(table):
                    paths.check_reference(metadata.job_id, file.path)
                    found = sizes.get(file.path)
                    if found != file.size_bytes:
                        state = "is missing" if found is None else f"has {found} bytes, {file.size_bytes} were written"
                        raise DamagedStateError(
                            f"{self.storage.url}/{file.path} {state}; table {name!r} of operator "
                            f"{operator.operator_metadata.operator_id!r} at epoch {metadata.epoch} needs it"
                        )

    def check_written(self, metadata: CheckpointMetadata) -> None:
        """Raise `DamagedStateError` unless what an epoch refers to is where this driver looks for it.

        That is what its tasks wrote, and the checkpoint that it follows; now and then also what it took over from
        epochs before: to list all of that takes longer the more there is.
        """
        parent = paths.checkpoint_metadata(metadata.job_id, metadata.parent_epoch)
        if metadata.parent_epoch and not self.storage.exists(parent):
            raise DamagedStateError(self._removed(parent))
        folder = paths.epoch_folder(metadata.job_id, metadata.epoch) + "/"
        needed, place = referenced_sizes(metadata), paths.checkpoints_folder(metadata.job_id)
        if metadata.epoch % LOOK_AT_ALL_EPOCHS:
            needed, place = {path: size for path, size in needed.items() if path.startswith(folder)}, folder[:-1]
        listed = {file.path: file.size_bytes for file in self.storage.list(place)} if needed else {}
        for path, size_bytes in needed.items():
            # A listing may be a little late on network filesystems.
            if listed.get(path) == size_bytes or self._has(path, size_bytes):
                continue
            if not path.startswith(folder):
                raise DamagedStateError(self._removed(path))
            raise DamagedStateError(
                f"a task wrote {self.storage.url}/{path}, and the driver does not find it there: the checkpoint "
                "URL must be a place that the driver and all executors share"
            )

    def _removed(self, path: str) -> str:
        return f"{self.storage.url}/{path} was removed or changed while job {self.job_id!r} ran, which needs it"

    def load_checkpoint_metadata(self, job_id: str, epoch: int) -> CheckpointMetadata:
        path = paths.checkpoint_metadata(job_id, epoch)
        name = f"{self.storage.url}/{path}"
        data = read_metadata(self.storage, path)
        metadata = self.seals.unseal(data, CheckpointMetadata, path=path, name=name)
        if metadata.job_id != job_id or metadata.epoch != epoch:
            raise DamagedStateError(f"{name} is of job {metadata.job_id!r}, epoch {metadata.epoch}")
        for operator in metadata.operators:
            for table in operator.table_checkpoint_metadata.values():
                for file in needed_files(table):
                    paths.check_reference(job_id, file.path)
        return metadata

    def load_operator_metadata(self, job_id: str, operator_id: str, epoch: int) -> OperatorCheckpointMetadata | None:
        return operators_by_id(self.load_checkpoint_metadata(job_id, epoch).operators).get(operator_id)

    def write_operator_checkpoint_metadata(self, metadata: OperatorCheckpointMetadata) -> None:
        identity = metadata.operator_metadata
        path = paths.operator_metadata(identity.job_id, identity.epoch, identity.operator_id, metadata.subtask_index)
        # The checkpoint embeds it: this file is for people, and tasks, which write it, have no key.
        self.storage.write(path, seal(metadata), is_durable=False)

    def write_checkpoint_metadata(self, metadata: CheckpointMetadata) -> None:
        self.publish(metadata)

    def publish(self, metadata: CheckpointMetadata) -> CheckpointMetadata:
        """Create the epoch; returns what was published, with generation, incarnation and attempt filled in.

        Raises `FencedError` if a newer generation owns the job, and `EpochTakenError` if another
        attempt was first. The caller must not commit then: if the epoch was created all the same,
        the owner of the job goes on from it, and commits it.
        """
        attempt = CheckpointMetadata()
        attempt.CopyFrom(metadata)
        attempt.generation = metadata.generation or self.generation
        attempt.incarnation = self.incarnation or metadata.incarnation
        attempt.attempt_id = metadata.attempt_id or secrets.token_bytes(16)
        check_metadata_size(attempt)
        newest = self._check_generation(attempt)
        self._ownership.check()
        path = paths.checkpoint_metadata(attempt.job_id, attempt.epoch)
        if self.storage.put_if_absent(path, self.seals.seal(attempt, path)):
            # The epoch may have been published by another driver, and deleted as an old one, since the first look:
            # creating it again proves nothing then. A driver that took over before that must be here by now.
            try:
                self._check_generation(attempt)
                self._ownership.check()
            except FencedError:
                if self._ownership.is_of_another_life(self._claimed_generations()):
                    # The state was removed since the first look. What was just created belongs to no job, and would be
                    # in the way of the next one.
                    self.storage.delete(path)
                raise
            return self._note_published(attempt)
        existing = self.load_checkpoint_metadata(attempt.job_id, attempt.epoch)
        decision = decide_publication(attempt, newest_generation=newest, existing=existing)
        if decision is PublicationKind.FENCED:
            raise self._fenced(attempt, existing.generation)
        if decision is PublicationKind.TAKEN:
            raise self._taken(attempt, existing.generation)
        return self._note_published(attempt)

    def _note_published(self, attempt: CheckpointMetadata) -> CheckpointMetadata:
        self._ownership.mark_published()
        self._published = (attempt.epoch, attempt.attempt_id)
        return attempt

    def check_turn(self, epoch: int) -> None:
        """Raise as `publish` would if `epoch` is for another driver to publish; reads only.

        Explains a failure: what another driver publishes makes files superfluous that this one still reads.
        """
        attempt = CheckpointMetadata(job_id=self.job_id, epoch=epoch, generation=self.generation)
        self._check_generation(attempt)
        self._ownership.check()
        if self.storage.exists(paths.checkpoint_metadata(self.job_id, epoch)):
            generation = self.load_checkpoint_metadata(self.job_id, epoch).generation
            if generation != self.generation:
                raise self._taken(attempt, generation)

    def check_commit(self, epoch: int) -> None:
        """Raise `FencedError` unless this driver still owns the job; called right before each sink commits `epoch`.

        Between this and what the sink does another driver may take over: only the sink can refuse it then, by the
        token that it is given.
        """
        self._ownership.mark_published()
        attempt = CheckpointMetadata(job_id=self.job_id, epoch=epoch, generation=self.generation)
        self._check_generation(attempt, doing="committed")
        self._ownership.check()

    def mark_committed(self, epoch: int) -> None:
        """Record that every sink committed `epoch`; a second marker changes nothing."""
        if not self.storage.exists(paths.checkpoint_metadata(self.job_id, epoch)):
            raise StateError(f"job {self.job_id!r}: epoch {epoch} was never published, it cannot be committed")
        published, attempt_id = self._published
        if published != epoch:
            attempt_id = self.load_checkpoint_metadata(self.job_id, epoch).attempt_id
        now_us, generation = self._now_us(), self.generation
        marker = CommittedMarker(epoch=epoch, generation=generation, time_us=now_us, attempt_id=attempt_id)
        create_marker(self.storage, self.seals, self.job_id, marker)

    def is_committed(self, epoch: int) -> bool:
        return self.storage.exists(paths.committed_marker(self.job_id, epoch))

    def list_epochs(self) -> list[int]:
        """Every published epoch, oldest first."""
        return sorted(self._facts().published)

    def read_facts(self) -> JobFacts:
        """What a listing of the job says now; reads only."""
        return self._facts()

    def cleanup_checkpoint(self, metadata: CheckpointMetadata, old_min_epoch: int, new_min_epoch: int) -> None:
        if not old_min_epoch <= new_min_epoch <= metadata.epoch:
            raise StateError(
                f"job {self.job_id!r}: cannot clean up epochs {old_min_epoch} to {new_min_epoch} "
                f"with the latest at {metadata.epoch}"
            )
        # A job that was started again on removed state counts its generations and epochs from 1, as this one did.
        self._ownership.check()
        plan = self.plan_cleanup(new_min_epoch, last_epoch=metadata.epoch)
        for path in plan.metadata:
            self.storage.delete(path)
        # A driver that took over while those went may have chosen one of them to go back to, and needs its files. One
        # that takes over from here on finds none of them.
        if self._is_owner(self._claimed_generations()):
            for path in plan.data:
                self.storage.delete(path)

    def plan_cleanup(self, new_min_epoch: int, *, last_epoch: int | None = None) -> CleanupPlan:
        """What `cleanup_checkpoint` would delete now, of epochs up to `last_epoch`; reads only.

        Nothing, for a driver that lost its job: what nobody refers to may be its successor's work.
        """
        facts = self._facts()
        if not self._is_owner(facts.generations):
            return CleanupPlan((), ())
        kept = {
            epoch: self.load_checkpoint_metadata(self.job_id, epoch)
            for epoch in facts.published
            if epoch >= new_min_epoch
        }
        return plan_cleanup(self.job_id, facts, kept, new_min_epoch=new_min_epoch, last_epoch=last_epoch)

    def _is_owner(self, generations: Iterable[int]) -> bool:
        """Whether none of the claims is newer; always, for whoever claimed nothing."""
        return not self.generation or self.generation >= max(generations, default=0)

    def _facts(self) -> JobFacts:
        return derive_job_facts(self.job_id, (file.path for file in self.storage.list(paths.job_folder(self.job_id))))

    def _newest_readable(self, facts: JobFacts) -> CheckpointMetadata | None:
        for epoch in resolve_candidates(facts):
            try:
                return self.load_checkpoint_metadata(self.job_id, epoch)
            except SealKeyError:
                # Whoever has not the key of the job takes it from nobody.
                raise
            except (DamagedStateError, MissingFileError, UnsafePathError):
                # Whoever restores the job says what is wrong.
                continue
        return None

    def _claimed_generations(self) -> list[int]:
        listed = self.storage.list(paths.generations_folder(self.job_id))
        found = (paths.generation_of(self.job_id, file.path) for file in listed)
        return [generation for generation in found if generation is not None]

    def _epochs_of(self, metadata: CheckpointMetadata) -> list[int]:
        referenced = {
            paths.epoch_of(metadata.job_id, file.path)
            for operator in metadata.operators
            for table in operator.table_checkpoint_metadata.values()
            for file in needed_files(table)
        }
        return sorted(epoch for epoch in referenced if epoch is not None)

    def _has(self, path: str, size_bytes: int) -> bool:
        try:
            return self.storage.size(path) == size_bytes
        except MissingFileError:
            return False

    def _list_epoch(self, epoch: int) -> Sequence[StoredFile]:
        return self.storage.list(paths.epoch_folder(self.job_id, epoch))

    def _whole_checkpoint_before(self, facts: JobFacts, damaged: int) -> str:
        for epoch in resolve_candidates(facts):
            if epoch >= damaged:
                continue
            try:
                self.prepare_checkpoint_load(self.load_checkpoint_metadata(self.job_id, epoch))
            except (DamagedStateError, MissingFileError):
                continue
            return f"the newest checkpoint that is whole is epoch {epoch} (arroyo checkpoints repair goes back to it)"
        return "no other checkpoint of the job is whole (arroyo checkpoints verify lists what is damaged)"

    def _check_generation(self, attempt: CheckpointMetadata, *, doing: str = "published") -> int:
        """The newest generation; `FencedError` if it is newer than the attempt's."""
        newest = max(self._claimed_generations(), default=0)
        if decide_publication(attempt, newest_generation=newest, existing=None) is PublicationKind.FENCED:
            raise self._fenced(attempt, newest, doing=doing)
        return newest

    def _taken(self, attempt: CheckpointMetadata, generation: int) -> EpochTakenError:
        return EpochTakenError(
            f"job {attempt.job_id!r}: epoch {attempt.epoch} was published by another attempt of generation "
            f"{generation} (this driver has {attempt.generation}); resolve the latest checkpoint again"
        )

    def _fenced(self, attempt: CheckpointMetadata, newest: int, *, doing: str = "published") -> FencedError:
        return FencedError(
            f"job {attempt.job_id!r}: epoch {attempt.epoch} cannot be {doing} by generation {attempt.generation}, "
            f"because generation {newest} owns the job now; this driver must stop"
        )


StateBackend = ParquetBackend
