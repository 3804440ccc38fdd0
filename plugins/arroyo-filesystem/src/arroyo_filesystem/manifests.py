"""Which files belong to which epoch, for readers who want whole epochs only.

Files get their names one by one: for a moment, or until a driver that died meanwhile is restarted, a part of an epoch
is visible. A manifest is visible at once: `_committed/{job}.{node}.{state}-{epoch}.json` appears when every file that
it lists is in its place. Before the first file is moved, the same list appears as `.begun`, and goes when the epoch is
complete.

Two names, and not one that is written over: a driver that lost the job long ago may still begin a commit that
another one has completed, and must not make it incomplete again. Both contents follow from the checkpoint alone, so
whoever writes one writes the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from arroyo_core.api import TaskInfo
from arroyo_core.api.confined import check_relative
from arroyo_core.errors import Domain, RetryHint, StateError, UnsafePathError
from arroyo_filesystem.location import Location
from arroyo_filesystem.staging import StagedFile

MANIFEST_FOLDER = "_committed"
BEGUN, COMPLETE = "begun", "json"
#: Files of an object store that are read at the same time.
PARALLEL_READS = 16


class DamagedManifestError(StateError):
    """A manifest is not what a sink wrote; no retry helps."""

    domain = Domain.EXTERNAL
    retry = RetryHint.NO_RETRY


class ManifestFile(msgspec.Struct, frozen=True):
    """A file of an epoch; the path is relative to the folder of the sink."""

    path: str
    rows: int
    bytes: int


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a sink wrote in one epoch."""

    job: str
    node: str
    #: Tells jobs of one name apart.
    state_id: str
    epoch: int
    #: Whether every file is in its place.
    complete: bool
    rows: int
    bytes: int
    files: tuple[ManifestFile, ...]

    @property
    def owner(self) -> str:
        """Who wrote it, as the name begins."""
        return f"{self.job}.{self.node}.{self.state_id}"

    @property
    def path(self) -> str:
        """Relative to the folder of the sink."""
        return f"{MANIFEST_FOLDER}/{self.owner}-{self.epoch:08}.{COMPLETE if self.complete else BEGUN}"

    def completed(self) -> Manifest:
        return msgspec.structs.replace(self, complete=True)


def encode_manifest(manifest: Manifest) -> bytes:
    """One line of JSON, which every reader of JSON lines takes, too."""
    return msgspec.json.encode(manifest) + b"\n"


def read_manifests(location: Location) -> list[Manifest]:
    """Of all epochs that are complete; raises `DamagedManifestError` naming one that is not whole."""
    location.fs.invalidate_cache()
    try:
        found = location.fs.ls(location.child(MANIFEST_FOLDER), detail=False)
    except FileNotFoundError:
        return []
    names = sorted(str(path).rpartition("/")[2] for path in found)
    with ThreadPoolExecutor(PARALLEL_READS) as pool:
        return list(pool.map(lambda name: _read(location, name), (name for name in names if name.endswith(COMPLETE))))


def _read(location: Location, name: str) -> Manifest:
    with location.fs.open(location.child(f"{MANIFEST_FOLDER}/{name}"), "rb") as stream:
        content = stream.read()
    try:
        manifest = msgspec.json.decode(content, type=Manifest)
        for file in manifest.files:
            check_relative(file.path)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, UnsafePathError) as error:
        raise DamagedManifestError(f"{name!r} in {location.url!r} is not a manifest: {error}") from error
    return manifest


def derive_manifest(files: Sequence[StagedFile], task_info: TaskInfo, epoch: int, *, state_id: str) -> Manifest:
    """The manifest of an epoch whose commit begins."""
    listed = (ManifestFile(path=file.final, rows=file.rows, bytes=file.size) for file in files)
    return Manifest(
        job=task_info.job_id,
        node=task_info.operator_id,
        state_id=state_id,
        epoch=epoch,
        complete=False,
        rows=sum(file.rows for file in files),
        bytes=sum(file.size for file in files),
        files=tuple(sorted(listed, key=lambda file: file.path)),
    )
