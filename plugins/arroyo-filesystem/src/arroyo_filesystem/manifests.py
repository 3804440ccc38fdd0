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

import msgspec

from arroyo_core.api import TaskInfo
from arroyo_filesystem.staging import StagedFile

MANIFEST_FOLDER = "_committed"
BEGUN, COMPLETE = "begun", "json"


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
    def path(self) -> str:
        """Relative to the folder of the sink."""
        name = f"{self.job}.{self.node}.{self.state_id}-{self.epoch:08}"
        return f"{MANIFEST_FOLDER}/{name}.{COMPLETE if self.complete else BEGUN}"

    def completed(self) -> Manifest:
        return msgspec.structs.replace(self, complete=True)


def encode_manifest(manifest: Manifest) -> bytes:
    """One line of JSON, which every reader of JSON lines takes, too."""
    return msgspec.json.encode(manifest) + b"\n"


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
