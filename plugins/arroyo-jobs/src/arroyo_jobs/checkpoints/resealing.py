"""Seals for a job that has checkpoints already: puts them on, exchanges them for another key's, or takes them off.

A file is replaced by one with the same message. The newest claim is the first: a driver that runs all the same sees
that its claim is another's, and stops. What was interrupted goes on when it is asked for again.
"""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf.message import Message

from arroyo_core.proto.state_pb2 import CheckpointMetadata, CommittedMarker, GenerationClaim
from arroyo_core.state import paths
from arroyo_core.state.backend import ParquetBackend
from arroyo_core.state.envelope import unseal
from arroyo_core.state.limits import read_metadata
from arroyo_core.state.seals import Seals, is_sealed


@dataclass(frozen=True, slots=True, kw_only=True)
class ResealingPlan:
    """The metadata files of a job that have another seal than they would be written with now, or none."""

    epochs: tuple[int, ...]
    #: Those that have none, which are taken as they are.
    unsealed: tuple[int, ...]
    #: All of them, the newest claim first; relative to the checkpoint URL.
    files: tuple[str, ...]


class Resealing:
    """Gives the files of one job the seals of the backend, or none. `plan` only reads."""

    def __init__(self, backend: ParquetBackend, *, is_removed: bool = False) -> None:
        self._storage = backend.storage
        self._job_id = backend.job_id
        self._backend = backend
        #: What files are written with.
        self._target = Seals() if is_removed else backend.seals
        #: Owns the job when all is done.
        self.claimant = ParquetBackend(backend.storage, backend.job_id, seals=self._target)

    def plan(self) -> ResealingPlan:
        """What there is to do. Raises `SealError` for a file with a seal not its own, and `DamagedStateError`."""
        facts = self._backend.read_facts()
        data = {path: read_metadata(self._storage, path) for path in self._paths()}
        files = [path for path, content in data.items() if not self._target.is_current(content)]
        for path in files:
            self._message(path, data[path])
        epochs = {path: paths.epoch_of(self._job_id, path) for path in files}
        of = {epoch for epoch in epochs.values() if epoch in facts.published}
        bare = {epoch for path, epoch in epochs.items() if epoch in of and not is_sealed(data[path])}
        return ResealingPlan(epochs=tuple(sorted(of)), unsealed=tuple(sorted(bare)), files=tuple(files))

    def carry_out(self) -> ResealingPlan:
        """Replace the files, and claim a generation; returns what was done. No driver of the job may run."""
        plan = self.plan()
        for path in plan.files:
            message = self._message(path, read_metadata(self._storage, path))
            if isinstance(message, CommittedMarker) and not message.attempt_id:
                epoch = paths.checkpoint_metadata(self._job_id, message.epoch)
                checkpoint = self._message(epoch, read_metadata(self._storage, epoch))
                assert isinstance(checkpoint, CheckpointMetadata)
                message.attempt_id = checkpoint.attempt_id
            self._storage.write(path, self._target.seal(message, path))
        self.claimant.claim_generation()
        return plan

    def _paths(self) -> list[str]:
        facts = self._backend.read_facts()
        claims = [paths.generation_claim(self._job_id, max(facts.generations))] if facts.generations else []
        published = sorted(facts.published)
        checkpoints = [paths.checkpoint_metadata(self._job_id, epoch) for epoch in published]
        markers = [paths.committed_marker(self._job_id, epoch) for epoch in published if epoch in facts.committed]
        return [*claims, *checkpoints, *markers]

    def _message(self, path: str, data: bytes) -> Message:
        kinds = {paths.CHECKPOINT_FILE: CheckpointMetadata, paths.COMMITTED_FILE: CommittedMarker}
        kind: type[Message] = kinds.get(path.rpartition("/")[2], GenerationClaim)
        name = f"{self._storage.shown_url}/{path}"
        if is_sealed(data):
            return self._backend.seals.unseal(data, kind, path=path, name=name)
        return unseal(data, kind, name=name)
