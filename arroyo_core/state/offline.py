"""For what changes a job's checkpoints while no driver runs: whether one may run, and state under another number."""

from __future__ import annotations

import time
from collections.abc import Callable

from arroyo_core.errors import Domain, RetryHint, StateError
from arroyo_core.proto.state_pb2 import CheckpointMetadata
from arroyo_core.state import paths
from arroyo_core.state.backend import ParquetBackend
from arroyo_core.state.failures import DamagedStateError, MissingFileError
from arroyo_core.state.inspection import finished_epoch
from arroyo_core.state.merge import clear_staged
from arroyo_core.state.protocol import JobFacts
from arroyo_core.state.storage import StorageProvider

#: The property of a checkpoint that says which one it was made of.
REPAIRED_FROM = "repaired_from"


class RunningJobError(StateError):
    """A driver of the job runs, or may run; the message says what can be done."""

    domain = Domain.USER
    retry = RetryHint.NO_RETRY


def check_quiet(
    backend: ParquetBackend, quiet_us: int, *, now_us: Callable[[], int] = lambda: time.time_ns() // 1000
) -> None:
    """Raise `RunningJobError` if a driver may be running: the job finished, or nothing was written for `quiet_us`.

    Nobody can know: a driver that waits for its sources leaves no sign. Whoever claims the job fences it.
    """
    facts = backend.read_facts()
    generation = max(facts.generations, default=0)
    if not generation or finished_epoch(backend, facts) is not None:
        return
    quiet_since_us = now_us() - _last_sign_us(backend, facts, generation)
    if quiet_since_us < quiet_us:
        raise RunningJobError(
            f"a driver of job {backend.job_id!r} (generation {generation}) may be running: its last sign is "
            f"{max(0, quiet_since_us) // 1_000_000} s old. Stop it with `arroyo stop`, and wait until "
            f"{quiet_us // 1_000_000} s have passed since; or, if you know that none runs, add --force"
        )


def _last_sign_us(backend: ParquetBackend, facts: JobFacts, generation: int) -> int:
    try:
        claimed = backend.read_claim(generation).time_us
    except (DamagedStateError, MissingFileError):
        claimed = 0
    newest = sorted(facts.present)[-2:]
    recent = [path for path in facts.files if paths.epoch_of(backend.job_id, path) in newest]
    return max((claimed, *(modified_at_us(backend.storage, path) or 0 for path in recent)))


def modified_at_us(storage: StorageProvider, path: str) -> int | None:
    """When a file was written; None for one that is gone."""
    try:
        return storage.modified_us(path)
    except MissingFileError:
        return None


def renumber_checkpoint(checkpoint: CheckpointMetadata, number: int) -> CheckpointMetadata:
    """The same state as a checkpoint of another epoch, which nothing needs to commit; pure."""
    renumbered = CheckpointMetadata()
    renumbered.CopyFrom(checkpoint)
    renumbered.epoch = number
    renumbered.parent_epoch = checkpoint.epoch
    renumbered.generation = 0
    renumbered.attempt_id = b""
    renumbered.needs_commit = False
    renumbered.properties[REPAIRED_FROM] = str(checkpoint.epoch).encode()
    for operator in renumbered.operators:
        operator.operator_metadata.epoch = number
        operator.needs_commit = False
        for table in operator.table_checkpoint_metadata.values():
            clear_staged(table)
    return renumbered
