"""Files that become visible only with the epoch they belong to: the second phase.

Runs after the checkpoint that names the files is durable, and again after a crash at any point of
itself: each move is done at most once, and a move that was done is recognised.
"""

from __future__ import annotations

import contextlib
import errno
import os
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from arroyo_core.api import TaskInfo
from arroyo_core.errors import Domain, RetryHint, StateError, naming_path
from arroyo_filesystem.compacted import Records
from arroyo_filesystem.confinement import check_files
from arroyo_filesystem.location import Location, make_folder, sync_folder
from arroyo_filesystem.manifests import Manifest, derive_manifest, encode_manifest
from arroyo_filesystem.object_stores import is_object_store
from arroyo_filesystem.staging import STAGING_FOLDER, StagedFile, decode_files, operator_folder

#: Copies inside an object store wait for the network only.
PARALLEL_MOVES = 16
#: How often a manifest is written that another driver's sweep takes away before it has its name.
MANIFEST_ATTEMPTS = 5


class LostFileError(StateError):
    """A file that was staged is gone; no retry brings it back."""

    domain = Domain.EXTERNAL
    retry = RetryHint.NO_RETRY


def commit_epoch(
    location: Location,
    epoch: int,
    staged: Mapping[int, bytes],
    task_info: TaskInfo,
    *,
    state_id: str,
    has_manifest: bool = False,
) -> int:
    """Move what all subtasks staged in `epoch` to its final names, then sweep; the number of files.

    With `has_manifest`, tell readers before the first move and after the last one; not of an epoch without files.
    Raises `UnsafePathError`, before anything is moved, where a name is not the operator's own, and `LostFileError`
    naming a file that is neither staged nor final.
    """
    files = [file for data in staged.values() for file in decode_files(data)]
    check_files(location, files, task_info)
    folder = operator_folder(task_info, state_id)
    location.fs.invalidate_cache()
    if has_manifest and files:
        begun = derive_manifest(files, task_info, epoch, state_id=state_id)
        put_manifest(location, begun, folder=f"{folder}/{epoch}")
        move_files(location, files)
        put_manifest(location, begun.completed(), folder=f"{folder}/{epoch}")
        remove_manifest(location, begun)
    else:
        move_files(location, files)
    sweep(location, folder, epoch)
    return len(files)


def put_manifest(location: Location, manifest: Manifest, *, folder: str) -> None:
    """Make a manifest visible, whole and lasting; `folder` is one that is swept with the epoch.

    Again, to the same effect, where a commit is repeated. Another driver may commit the same epoch at the same time,
    and sweep what is staged here: a manifest follows from the checkpoint, so it is written once more.
    """
    content = encode_manifest(manifest)
    for _ in range(MANIFEST_ATTEMPTS - 1):
        with contextlib.suppress(FileNotFoundError, LostFileError):
            put_whole(location, manifest.path, content, draft=f"{folder}/{uuid.uuid4().hex}.manifest")
            return
    put_whole(location, manifest.path, content, draft=f"{folder}/{uuid.uuid4().hex}.manifest")


def put_whole(location: Location, name: str, content: bytes, *, draft: str) -> None:
    """Write a file that appears whole and lasts, or replaces one; it may be written as `draft` first."""
    if not location.is_local and is_object_store(location.fs):
        with closing(location.fs.open(location.child(name), "wb")) as stream:
            stream.write(content)
        return
    staged = StagedFile(draft, name, 0, len(content))
    path = location.child(staged.staged)
    if location.is_local:
        make_folder(Path(path).parent)
        with naming_path(path), Path(path).open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        _move_local(location, staged)
        sync_folder(location.child(name.rpartition("/")[0]))
        return
    for parent in (path.rpartition("/")[0], location.child(name).rpartition("/")[0]):
        location.fs.makedirs(parent, exist_ok=True)
    with closing(location.fs.open(path, "wb")) as stream:
        stream.write(content)
    _move_remote(location, staged)


def remove_manifest(location: Location, manifest: Manifest) -> None:
    """Take a manifest away; another driver may have done so."""
    with contextlib.suppress(FileNotFoundError):
        location.fs.rm_file(location.child(manifest.path))


def move_files(location: Location, files: Sequence[StagedFile]) -> None:
    """Give every file its final name."""
    if location.is_local:
        for file in files:
            _move_local(location, file)
        for folder in sorted({folder for file in files for folder in _folders(file.final)}):
            sync_folder(location.child(folder))
        return
    with ThreadPoolExecutor(PARALLEL_MOVES) as pool:
        list(pool.map(lambda file: _move_remote(location, file), files))


def sweep(location: Location, folder: str, epoch: int) -> None:
    """Delete what an operator staged in its `folder` up to `epoch`: dead attempts, since all else is moved.

    Later epochs are left alone, and so is every other operator and job.
    """
    mine = location.child(folder)
    if not is_own_folder(location, folder):
        return
    try:
        found = location.fs.ls(mine, detail=False)
    except FileNotFoundError:
        return
    for path in found:
        name = path.rstrip("/").rpartition("/")[2]
        if name.isdecimal() and int(name) <= epoch:
            _remove_folder(location, path)
    if location.is_local:
        # Elsewhere empty folders stay: the `rmdir` of some filesystems, such as HDFS, deletes what is inside too.
        for path in (mine, location.child(STAGING_FOLDER)):
            # Not empty: another epoch, operator or job stages there. Gone: somebody else was as tidy.
            with contextlib.suppress(OSError):
                Path(path).rmdir()


def is_own_folder(location: Location, folder: str) -> bool:
    """Whether a folder is where its name says; behind a link, what is there may be anybody's."""
    if not location.is_local:
        return True
    return os.path.realpath(location.child(folder)) == os.path.join(os.path.realpath(location.path), folder)  # noqa: PTH118


def _remove_folder(location: Location, path: str) -> None:
    try:
        location.fs.rm(path, recursive=True)
    except FileNotFoundError:
        # Another driver was faster.
        return
    except OSError as error:
        # A driver that lost the job may be staging there to this moment; the next sweep takes what it leaves.
        if error.errno != errno.ENOTEMPTY:
            raise


def _move_local(location: Location, file: StagedFile) -> None:
    staged, final = Path(location.child(file.staged)), Path(location.child(file.final))
    make_folder(final.parent)
    try:
        staged.replace(final)
    except FileNotFoundError:
        if not final.exists() and not _is_replaced(location, file):
            raise _lost(location, file) from None


def _move_remote(location: Location, file: StagedFile) -> None:
    """Another driver may be replaying the same commit: at every step the file may already be in its place."""
    fs, staged, final = location.fs, location.child(file.staged), location.child(file.final)
    try:
        if is_object_store(fs):
            # A copy that was cut off left nothing; one that was completed is repeated, to the same effect.
            fs.cp_file(staged, final)
            fs.rm_file(staged)
        else:
            fs.makedirs(final.rpartition("/")[0], exist_ok=True)
            fs.mv(staged, final)
    except FileNotFoundError:
        if not fs.exists(final) and not _is_replaced(location, file):
            raise _lost(location, file) from None
    except FileExistsError:
        # Some stores do not move onto a file. What is whole is in its place, and the staged file is swept.
        if fs.exists(staged) and fs.info(final)["size"] != file.size:
            fs.rm_file(final)
            fs.mv(staged, final)


def _folders(name: str) -> list[str]:
    """The folders from the file's own up to the sink's, whose entries a move may have changed."""
    parts = name.split("/")[:-1]
    return ["/".join(parts[:depth]) for depth in range(len(parts) + 1)]


def _is_replaced(location: Location, file: StagedFile) -> bool:
    """Whether a file was committed before, and its rows are in a larger one since."""
    return file.final in Records.read(location).replaced


def _lost(location: Location, file: StagedFile) -> LostFileError:
    return LostFileError(
        f"cannot commit {file.final!r} in {location.url!r}: its {file.rows} rows were staged as {file.staged!r}, "
        "and neither file exists; has the path of the sink changed since, or was the folder cleared by hand?"
    )
