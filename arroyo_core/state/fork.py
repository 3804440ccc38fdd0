"""Fork: a new job that begins with another job's checkpoint.

The files of the checkpoint are copied below the new job, so that each job's garbage collection minds its
own. The checkpoint keeps its number, because files of one table are ordered by epoch: the new job's own epochs follow.
What the other job staged for a commit is not taken over: its output is not ours to make visible.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import msgspec

from arroyo_core.api.urls import absolute_url, redact_url
from arroyo_core.proto.state_pb2 import CheckpointMetadata, StateFile
from arroyo_core.state import paths
from arroyo_core.state.backend import ParquetBackend
from arroyo_core.state.failures import UNREADABLE_JSON, DamagedStateError, ForkError, MissingFileError
from arroyo_core.state.inspection import find_jobs
from arroyo_core.state.merge import clear_staged, table_files
from arroyo_core.state.protocol import JobFacts, resolve_candidates
from arroyo_core.state.storage import StorageProvider, get_storage_provider

#: The property of a checkpoint that says where its job came from; every later checkpoint of the job keeps it.
FORKED_FROM = "forked_from"

#: Files that are copied side by side where a store is remote. Each is held in memory meanwhile.
PARALLEL_COPIES = 4

#: What may follow the URL; a job's name is the pipeline's, see `name` in a pipeline file.
_JOB = re.compile(r"(?P<job>[A-Za-z0-9_.-]+)(@(?P<epoch>[1-9][0-9]{0,9}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkSource:
    """A checkpoint of some job: the newest one where `epoch` is None."""

    #: Not in the repr: a URL may carry a password.
    url: str = field(repr=False)
    #: None for the job of the same name.
    job_id: str | None = None
    epoch: int | None = None

    @classmethod
    def parse(cls, text: str) -> ForkSource:
        """Read `URL[#JOB[@EPOCH]]`; raises `ForkError` for anything else."""
        url, sharp, rest = text.rpartition("#")
        if not sharp:
            url, rest = text, ""
        found = _JOB.fullmatch(rest) if sharp else None
        if not url or (sharp and found is None):
            raise ForkError(f"{redact_url(text)!r} names no checkpoint: write URL, URL#JOB or URL#JOB@EPOCH")
        if found is None:
            return cls(url=url)
        return cls(url=url, job_id=found["job"], epoch=int(found["epoch"]) if found["epoch"] else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkOrigin:
    """Where a job was forked from, as its checkpoints record it; the URL has no password."""

    url: str
    job: str
    epoch: int

    def is_named_by(self, source: ForkSource, *, job_id: str) -> bool:
        """Whether `source`, given to the job `job_id`, means this."""
        is_same_job = (_place(source.url), source.job_id or job_id) == (self.url, self.job)
        return is_same_job and source.epoch in (None, self.epoch)

    def __str__(self) -> str:
        return f"epoch {self.epoch} of job {self.job!r} below {self.url}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCheckpoint:
    """A checkpoint of another job, and the store it is in."""

    backend: ParquetBackend
    checkpoint: CheckpointMetadata
    is_committed: bool

    @property
    def origin(self) -> ForkOrigin:
        return ForkOrigin(url=_place(self.backend.storage.url), job=self.checkpoint.job_id, epoch=self.checkpoint.epoch)


def find_checkpoint(source: ForkSource, *, job_id: str, is_committed_only: bool) -> FoundCheckpoint:
    """The checkpoint that `source` names, or else the newest; of the job `job_id` where it names none.

    `is_committed_only` passes over a newest checkpoint whose commit is under way, and refuses one that is named.
    Raises `ForkError` if there is none.
    """
    backend = ParquetBackend(get_storage_provider(source.url), source.job_id or job_id)
    facts = backend.read_facts()
    if not facts.published:
        jobs = ", ".join(find_jobs(backend.storage)) or "none"
        raise ForkError(f"job {backend.job_id!r} has no checkpoint below {_place(source.url)} (jobs there: {jobs})")
    if source.epoch is not None and source.epoch not in facts.published:
        kept = ", ".join(map(str, sorted(facts.published)))
        raise ForkError(f"job {backend.job_id!r} has no checkpoint {source.epoch} (kept epochs: {kept})")
    for epoch in resolve_candidates(facts) if source.epoch is None else [source.epoch]:
        found = _load(backend, facts, epoch)
        if found is not None and (found.is_committed or not is_committed_only):
            return found
    wanted = "a committed checkpoint" if source.epoch is None else f"epoch {source.epoch} committed"
    raise ForkError(
        f"job {backend.job_id!r} below {_place(source.url)} does not have {wanted} yet: "
        "its sinks have not made all of its output visible"
    )


def _load(backend: ParquetBackend, facts: JobFacts, epoch: int) -> FoundCheckpoint | None:
    try:
        checkpoint = backend.load_checkpoint_metadata(backend.job_id, epoch)
        backend.prepare_checkpoint_load(checkpoint)
    except MissingFileError:
        # Deleted since the listing: only the other job's cleanup does that.
        return None
    is_committed = not checkpoint.needs_commit or epoch in facts.committed
    return FoundCheckpoint(backend=backend, checkpoint=checkpoint, is_committed=is_committed)


def rewrite_checkpoint(checkpoint: CheckpointMetadata, *, job_id: str, origin: ForkOrigin) -> CheckpointMetadata:
    """The same state as a checkpoint of `job_id`; pure.

    Without commit data, driver and incarnation, which are the other job's; `FORKED_FROM` is set.
    """
    forked = CheckpointMetadata()
    forked.CopyFrom(checkpoint)
    forked.job_id = job_id
    forked.min_epoch = checkpoint.epoch
    forked.parent_epoch = 0
    forked.generation = 0
    forked.incarnation = ""
    forked.attempt_id = b""
    forked.needs_commit = False
    forked.properties[FORKED_FROM] = msgspec.json.encode(origin)
    for operator in forked.operators:
        operator.operator_metadata.job_id = job_id
        operator.needs_commit = False
        for table in operator.table_checkpoint_metadata.values():
            clear_staged(table)
            for file in table_files(table):
                file.path = _forked_path(file.path, job_id=job_id, epoch=checkpoint.epoch)
    return forked


def copy_files(
    checkpoint: CheckpointMetadata,
    origin: StorageProvider,
    target: StorageProvider,
    *,
    job_id: str,
    only: Collection[str],
) -> int:
    """Copy files of another job's checkpoint to where `rewrite_checkpoint` refers to them; returns the bytes.

    `only` has the names of the files, without their folders. May run twice, also at once: a file is copied to the
    same name with the same bytes. Raises `MissingFileError` if the other job deleted a file meanwhile,
    `DamagedStateError` if one is not what was written.
    """
    files = {
        file.path: file
        for operator in checkpoint.operators
        for table in operator.table_checkpoint_metadata.values()
        for file in table_files(table)
        if _name(file.path) in only
    }

    def copy(file: StateFile) -> int:
        data = origin.read(file.path, max_bytes=file.size_bytes)
        if hashlib.sha256(data).digest() != file.checksum:
            raise DamagedStateError(f"{redact_url(origin.url)}/{file.path} is not what was written; nothing is forked")
        target.write(_forked_path(file.path, job_id=job_id, epoch=checkpoint.epoch), data)
        return len(data)

    return sum(_for_each(copy, list(files.values()), is_remote=origin.is_remote or target.is_remote))


def forked_from(checkpoint: CheckpointMetadata) -> ForkOrigin | None:
    """Where the job of a checkpoint was forked from; None for a job that began by itself."""
    data = checkpoint.properties.get(FORKED_FROM)
    try:
        return msgspec.json.decode(data, type=ForkOrigin) if data else None
    except UNREADABLE_JSON as error:
        name = f"the property {FORKED_FROM!r} of epoch {checkpoint.epoch}"
        raise DamagedStateError(f"{name} does not name a checkpoint: {error}") from error


def _place(url: str) -> str:
    """One spelling of a URL for one place."""
    return redact_url(absolute_url(url)).rstrip("/") or "/"


def _forked_path(path: str, *, job_id: str, epoch: int) -> str:
    # All in the folder of the checkpoint: publishing it makes the names in that folder durable.
    return f"{paths.epoch_folder(job_id, epoch)}/{_name(path)}"


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _for_each(copy: Callable[[StateFile], int], files: list[StateFile], *, is_remote: bool) -> list[int]:
    if not is_remote or len(files) < 2:
        return [copy(file) for file in files]
    with ThreadPoolExecutor(PARALLEL_COPIES, thread_name_prefix="fork") as pool:
        return list(pool.map(copy, files))
