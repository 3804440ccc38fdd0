"""Files that were read to their end, deleted or moved away with the commit of an epoch.

Subtask 0 learns that a file is read from checkpoints of earlier epochs, or from its own tables: when the epoch that
names the file is committed, every epoch that has rows of it is. The commit may be repeated. It takes a file only if it
still is the one that was read, and moves none onto another.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from pathlib import Path, PurePosixPath

import msgspec
from arroyo_formats import file_formats
from fsspec.utils import glob_translate

from arroyo_core.api import OperatorContext
from arroyo_core.api.confined import check_local_file, check_local_folder, check_relative
from arroyo_core.errors import DataError, UnsafePathError, naming_path
from arroyo_filesystem.commit import PARALLEL_MOVES
from arroyo_filesystem.confinement import MAX_NAME_LENGTH
from arroyo_filesystem.listing import File, file_of_info, fixed_folder, formats_of, has_glob, is_hidden
from arroyo_filesystem.location import Location, make_folder, sync_folder, without_login
from arroyo_filesystem.object_stores import is_object_store
from arroyo_filesystem.staging import DamagedCommitError
from arroyo_filesystem.watch_settings import AfterCommit, WatchSettings
from arroyo_filesystem.window import WatchedFile

FINISHED_TABLE = "finished"


class FinishedFile(msgspec.Struct, frozen=True, array_like=True):
    """A file as it was read; the path is below the fixed part of the source's."""

    path: str
    size: int
    version: str

    @classmethod
    def of(cls, location: Location, watched: WatchedFile) -> FinishedFile:
        root = without_login(fixed_folder(location.path)).rstrip("/")
        return cls(without_login(watched.path).removeprefix(f"{root}/"), watched.size, watched.version)


class Outcome(Enum):
    """What became of a file."""

    DONE = "done"
    #: By an earlier attempt at the same commit, or by somebody else.
    GONE = "gone"
    CHANGED = "changed"
    LINKED = "linked"


def encode_finished(files: Sequence[FinishedFile]) -> bytes:
    """The list as commit data."""
    return msgspec.json.encode(files)


def decode_finished(data: bytes) -> list[FinishedFile]:
    """The list from commit data; raises `DamagedCommitError`."""
    try:
        return msgspec.json.decode(data, type=list[FinishedFile])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedCommitError(f"commit data are not a list of files that were read: {error}") from error


class FinishedFiles:
    """Does with the files of one epoch what the source is told to."""

    def __init__(self, location: Location, watch: WatchSettings, format_name: str) -> None:
        self._location = location
        self._root = Location(location.fs, fixed_folder(location.path), location.url)
        self._watch = watch
        self._format_name = format_name

    def commit(self, staged: Mapping[int, bytes], ctx: OperatorContext) -> None:
        """Delete or move all that subtasks staged; may be repeated.

        Raises `UnsafePathError`, before anything is done, for a name that the source would not read.
        """
        files = [file for data in staged.values() for file in decode_finished(data)]
        for file in files:
            problem = self.problem(file)
            if problem is not None:
                raise self._unsafe(problem)
        if not files:
            return
        self._location.fs.invalidate_cache()
        tag = f"{ctx.table_manager.state_id}-{ctx.token.epoch}"
        with ThreadPoolExecutor(1 if self._location.is_local else PARALLEL_MOVES) as pool:
            outcomes = list(pool.map(lambda file: self._take(file, tag), files))
        if self._location.is_local:
            self._sync(files)
        taken = sum(outcome is Outcome.DONE for outcome in outcomes)
        if taken:
            ctx.count("archived_files" if self._watch.archive else "deleted_files", taken)
        for outcome, why in (
            (Outcome.CHANGED, "changed after they were read"),
            (Outcome.LINKED, "are links, or lie behind one"),
        ):
            left = [file.path for file, found in zip(files, outcomes, strict=True) if found is outcome]
            if left:
                ctx.count("left_files", len(left))
                ctx.warn(
                    f"{len(left)} file(s) stay where they are, because they {why}: {left[0]}", topic=f"files that {why}"
                )

    def problem(self, file: FinishedFile) -> str | None:
        """Why a file is none that the source would read; None where it is."""
        try:
            check_relative(file.path, max_length=MAX_NAME_LENGTH)
        except UnsafePathError as error:
            return str(error)
        path = self._root.child(file.path)
        if has_glob(self._location.path):
            matches = re.match(glob_translate(self._location.path), path) is not None
        else:
            endings = {ending: [self._format_name] for ending in file_formats()[self._format_name].endings}
            matches = bool(formats_of(path, endings))
        is_read = matches and not is_hidden(path, self._root.path)
        return None if is_read else f"{file.path!r} is not a file that it reads"

    def _unsafe(self, reason: str) -> UnsafePathError:
        return UnsafePathError(
            f"commit data of a source of {self._location.url!r} would {self._watch.after_commit} what is not its own: "
            f"{reason}. Nothing was touched. Who can write to the checkpoint URL besides this job?"
        )

    def _take(self, file: FinishedFile, tag: str) -> Outcome:
        fs, path = self._location.fs, self._location.login.put_into(self._root.child(file.path))
        if self._location.is_local:
            try:
                check_local_file(self._root.path, file.path)
            except UnsafePathError:
                return Outcome.LINKED
        try:
            if File(path, file.size, file.version).is_changed(file_of_info(fs.info(path))):
                return Outcome.CHANGED
            if self._watch.after_commit is AfterCommit.DELETE:
                fs.rm_file(path)
            else:
                self._move(path, self._target(file, tag))
        except FileNotFoundError:
            return Outcome.GONE
        return Outcome.DONE

    def _target(self, file: FinishedFile, tag: str) -> str:
        """A name that no other file has: a second commit of the epoch may have left its own copy there."""
        archive = self._archive
        if not archive.fs.exists(archive.child(file.path)):
            return file.path
        name = PurePosixPath(file.path)
        return str(name.with_name(f"{name.stem}-{tag}{name.suffix}"))

    def _move(self, path: str, target: str) -> None:
        archive = self._archive
        if archive.is_local:
            check_local_folder(archive.path, target)
            final = Path(archive.child(target))
            make_folder(final.parent)
            try:
                Path(path).rename(final)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                raise DataError(
                    f"{path}: archive_path {archive.url!r} is on another disk, and files are moved there by a rename: "
                    "choose a folder on the same one"
                ) from error
            return
        fs = archive.fs
        if is_object_store(fs):
            fs.cp_file(path, archive.child(target))
            fs.rm_file(path)
            return
        fs.makedirs(archive.child(target).rpartition("/")[0], exist_ok=True)
        fs.mv(path, archive.child(target))

    @property
    def _archive(self) -> Location:
        if self._watch.archive is None:
            raise AssertionError("files are moved to an archive")
        return self._watch.archive

    def _sync(self, files: Sequence[FinishedFile]) -> None:
        folders = {str(Path(self._root.child(file.path)).parent) for file in files}
        if self._watch.archive is not None:
            folders |= {str(Path(self._watch.archive.child(file.path)).parent) for file in files}
        for folder in sorted(folders):
            with naming_path(folder):
                if Path(folder).is_dir():
                    sync_folder(folder)
