"""Repair: broken checkpoints are moved aside, and the job goes on from the newest one that is whole.

Nothing is lost: what goes is copied to `{job_id}/damaged/{number}/` first. Numbers of epochs are never used again,
because a sink may remember the epochs it has committed: where the newest checkpoints are broken, the state of the
newest whole one is published once more, under the number after the greatest. That is the one act that counts, and
it is put-if-absent, as for any epoch; a crash before it leaves everything as it was, one after it leaves files that
the next repair finds.

A repair claims a generation: a driver that runs all the same can publish no more.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from arroyo_core.errors import Domain, RetryHint, StateError
from arroyo_core.state import ParquetBackend, paths
from arroyo_core.state.failures import MissingFileError
from arroyo_core.state.offline import modified_at_us, renumber_checkpoint
from arroyo_core.state.protocol import JobFacts, referenced_paths
from arroyo_jobs.checkpoints.verification import Verdict, Verifier

#: Files are held in memory while they are copied: larger ones, which no job writes, are for people to move.
MAX_COPIED_BYTES = 2**31


class RepairError(StateError):
    """The job cannot be repaired, or not now; the message says what can be done."""

    domain = Domain.USER
    retry = RetryHint.NO_RETRY


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairPlan:
    """What a repair does; all paths are relative to the checkpoint URL."""

    #: Broken epochs, which are moved aside.
    dropped: tuple[int, ...] = ()
    problems: tuple[str, ...] = field(default=(), repr=False)
    #: The newest checkpoint that is whole; 0 for none.
    whole: int = 0
    #: The number under which the state of `whole` is published again; None where it is the newest anyway.
    republished: int | None = None
    #: Files of broken epochs that no whole one needs: copied aside, then deleted.
    moved: tuple[str, ...] = ()
    #: Files that no checkpoint needs: deleted.
    orphans: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.dropped and not self.orphans


def derive_repair(
    job_id: str, facts: JobFacts, verdicts: Sequence[Verdict], *, is_old: Callable[[str], bool] = lambda _: False
) -> RepairPlan:
    """What to do, from a listing and what verifying every published epoch found.

    `is_old` says of a file that no checkpoint needs whether it may go.
    """
    whole = [verdict for verdict in verdicts if verdict.is_whole]
    broken = [verdict for verdict in verdicts if not verdict.is_whole]
    dropped = {verdict.epoch for verdict in broken}
    newest = max((verdict.epoch for verdict in whole), default=0)
    is_newest_broken = max(dropped, default=0) > newest
    if is_newest_broken:
        # One that was never committed is not what the broken ones continued, or its output would be lost.
        newest = max((verdict.epoch for verdict in whole if _is_ready(verdict, facts)), default=0)
    needed = {path for verdict in whole if verdict.metadata for path in referenced_paths(verdict.metadata)}
    wanted = {path for verdict in broken if verdict.metadata for path in referenced_paths(verdict.metadata)}
    kept = {verdict.epoch for verdict in whole}
    moved, orphans = [], []
    for path in facts.files:
        epoch = paths.epoch_of(job_id, path)
        if epoch is None or path in needed:
            continue
        if epoch in dropped or path in wanted:
            moved.append(path)
        elif (paths.is_data(path) or paths.is_unfinished(path) or epoch not in kept) and is_old(path):
            orphans.append(path)
    return RepairPlan(
        dropped=tuple(sorted(dropped)),
        problems=tuple(problem for verdict in broken for problem in verdict.problems),
        whole=newest,
        republished=max(facts.present) + 1 if is_newest_broken and newest else None,
        moved=tuple(moved),
        orphans=tuple(orphans),
    )


def _is_ready(verdict: Verdict, facts: JobFacts) -> bool:
    metadata = verdict.metadata
    return metadata is not None and (not metadata.needs_commit or verdict.epoch in facts.committed)


class Repair:
    """Repairs one job. `plan` only reads; `carry_out` changes."""

    def __init__(self, backend: ParquetBackend, *, now_us: Callable[[], int] = lambda: time.time_ns() // 1000) -> None:
        self._backend = backend
        self._now_us = now_us

    def plan(self, *, orphan_age_us: int | None = None) -> RepairPlan:
        """Read every checkpoint. Without `orphan_age_us` orphans stay, whatever their age."""
        verdicts = list(Verifier(self._backend).verify_all())
        latest_us = self._now_us() - (orphan_age_us or 0)
        facts = self._backend.read_facts()

        def is_old(path: str) -> bool:
            modified_us = modified_at_us(self._backend.storage, path)
            return orphan_age_us is not None and modified_us is not None and modified_us < latest_us

        plan = derive_repair(self._backend.job_id, facts, verdicts, is_old=is_old)
        if plan.dropped and not plan.whole:
            raise RepairError(
                f"no checkpoint of job {self._backend.job_id!r} is whole and committed: there is nothing to go back "
                "to. Restore the files from a backup, or begin again with arroyo run --fresh --force\n"
                + "\n".join(plan.problems)
            )
        return plan

    def carry_out(self, *, orphan_age_us: int | None = None) -> RepairPlan:
        """Claim the job, look again, and do what there is to do; returns that."""
        self._backend.claim_generation()
        plan = self.plan(orphan_age_us=orphan_age_us)
        if plan.is_empty:
            return plan
        self._copy_aside(plan)
        if plan.republished is not None:
            self._republish(plan.whole, plan.republished)
        for path in sorted(plan.moved, key=_deletion_order):
            self._backend.storage.delete(path)
        for path in plan.orphans:
            self._backend.storage.delete(path)
        return plan

    def damaged_folder(self) -> str:
        """Where this repair puts what it moves aside; known after the claim."""
        return paths.damaged_folder(self._backend.job_id, self._backend.generation)

    def _copy_aside(self, plan: RepairPlan) -> None:
        storage, job_id, generation = self._backend.storage, self._backend.job_id, self._backend.generation
        for path in plan.moved:
            try:
                data = storage.read(path, max_bytes=MAX_COPIED_BYTES)
                storage.write(paths.damaged_copy(job_id, generation, path), data)
            except MissingFileError:
                # That it is not there may be what is broken.
                continue
        if plan.moved:
            record = {"time_us": self._now_us(), "dropped": plan.dropped, "whole": plan.whole, "why": plan.problems}
            storage.write(f"{self.damaged_folder()}/repair.json", json.dumps(record, indent=2).encode())

    def _republish(self, whole: int, number: int) -> None:
        """Publish the state of an epoch under another number; its output was committed before the next began."""
        checkpoint = self._backend.load_checkpoint_metadata(self._backend.job_id, whole)
        self._backend.publish(renumber_checkpoint(checkpoint, number))


def _deletion_order(path: str) -> tuple[bool, bool, str]:
    """Checkpoints first, then their markers, then data: a crash between leaves orphans, never half a checkpoint."""
    return (not path.endswith(paths.CHECKPOINT_FILE), not path.endswith(paths.COMMITTED_FILE), path)
