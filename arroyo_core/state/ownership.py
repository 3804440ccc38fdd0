"""A driver's hold on its job: its claim, and the incarnation of the job that the claim names.

Two jobs of one name and place are told apart by their incarnation. It is made with the first claim and copied by every
later one. Where the checkpoints are gone the numbers of epochs start over, and what is outside must not take new
epochs for old ones: the next claim makes another incarnation. One under which nothing was ever published is kept, so
that a driver finds what drivers before it have left in places that are named by it; a marker beside the claims tells
the two apart, created after an incarnation's first checkpoint and before its first commit.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable

from arroyo_core.proto.state_pb2 import CheckpointMetadata, GenerationClaim
from arroyo_core.state import paths
from arroyo_core.state.failures import DamagedStateError, FencedError, MissingFileError, RemovedStateError, SealError
from arroyo_core.state.limits import SMALL_FILE_BYTES
from arroyo_core.state.protocol import JobFacts, derive_incarnation, derive_next_generation
from arroyo_core.state.seals import Seals
from arroyo_core.state.storage import StorageProvider

_INCARNATION_BYTES = 8


class Ownership:
    """Makes one driver's claim, and says whether it still holds. Owns nothing before `take`."""

    def __init__(self, storage: StorageProvider, job_id: str, *, seals: Seals, now_us: Callable[[], int]) -> None:
        self._storage = storage
        self._seals = seals
        self._job_id = job_id
        self._now_us = now_us
        self._claim: GenerationClaim | None = None
        self._has_marker = False

    def take(self, facts: JobFacts, newest: CheckpointMetadata | None) -> GenerationClaim | None:
        """Claim the generation after all that `facts` and the newest checkpoint have; None if another was faster.

        Raises `SealError` before it claims anything: whoever has not the job's key takes it from nobody.
        """
        try:
            claimed = self._claimed_incarnation(max(facts.generations, default=0))
        except MissingFileError:
            # A newer driver has taken over since the listing, and cleaned up.
            return None
        self._seals.check_may_write()
        recorded = newest.incarnation if newest is not None else ""
        if self._seals.is_on and newest is not None and claimed and recorded and claimed != recorded:
            raise SealError(
                f"job {self._job_id!r}: epoch {newest.epoch} is of another life of the job (incarnation {recorded}; "
                f"the newest claim is of {claimed}): somebody has put an old checkpoint in its place. A job goes on "
                "from a copy with --fork-from"
            )
        claim = GenerationClaim(
            generation=derive_next_generation(facts, newest),
            time_us=self._now_us(),
            owner_id=secrets.token_bytes(16),
            incarnation=derive_incarnation(facts, claimed=claimed, recorded=recorded)
            or secrets.token_hex(_INCARNATION_BYTES),
        )
        path = paths.generation_claim(self._job_id, claim.generation)
        if not self._storage.put_if_absent(path, self._seals.seal(claim, path)):
            return None
        self._claim = claim
        self._has_marker = claim.incarnation in facts.incarnations
        return claim

    def check(self) -> None:
        """Raise `FencedError` unless the claim is where it was put: state may be removed while its driver runs."""
        if self._claim is None:
            return
        generation, place = self._claim.generation, f"{self._storage.url}/{paths.job_folder(self._job_id)}"
        path = paths.generation_claim(self._job_id, generation)
        try:
            found = self._storage.read(path, max_bytes=SMALL_FILE_BYTES)
        except MissingFileError:
            raise RemovedStateError(
                f"job {self._job_id!r}: the claim of this driver (generation {generation}) is gone: {place} was "
                "removed while it ran; this driver must stop, and a start without a checkpoint begins from the start"
            ) from None
        if found != self._seals.seal(self._claim, path):
            raise FencedError(
                f"job {self._job_id!r}: generation {generation} is another driver's now: {place} was removed, and the "
                "job started again, while this driver ran; it must stop"
            )

    def is_of_another_life(self, generations: Iterable[int]) -> bool:
        """Whether the state was removed since the claim: no claim is there, or the newest is of another incarnation."""
        if self._claim is None:
            return False
        newest = max(generations, default=0)
        try:
            return self._claimed_incarnation(newest) != self._claim.incarnation
        except MissingFileError:
            # A driver that came after it has cleaned up.
            return False

    def mark_published(self) -> None:
        """Note that the incarnation has a checkpoint; called before its first commit. Twice is as good as once."""
        if self._claim is None or self._has_marker:
            return
        path = paths.incarnation_marker(self._job_id, self._claim.incarnation)
        self._storage.put_if_absent(path, self._seals.seal(self._claim, path))
        self._has_marker = True

    def _claimed_incarnation(self, generation: int) -> str:
        """The incarnation of a claim; empty where there is none, or it cannot be read: the checkpoints have it too."""
        if not generation:
            return ""
        try:
            return self.read_claim(generation).incarnation
        except SealError:
            raise
        except DamagedStateError:
            return ""

    def read_claim(self, generation: int) -> GenerationClaim:
        """What was claimed; raises `MissingFileError` and `DamagedStateError`."""
        path = paths.generation_claim(self._job_id, generation)
        data = self._storage.read(path, max_bytes=SMALL_FILE_BYTES)
        return self._seals.unseal(data, GenerationClaim, path=path, name=f"{self._storage.shown_url}/{path}")
