"""Local files, made durable before they are visible."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from arroyo_core.local_folders import group_bits, private_opener
from arroyo_core.state.paths import UNFINISHED_PREFIX
from arroyo_core.state.storage import StoredFile


class LocalDriver:
    """A folder as an object store.

    A file is written under another name, synced, then renamed (or linked, which fails if the name
    is taken): after a crash a file is whole or not there. A create also syncs the folder, before and
    after: when the created file is there, so is whatever was written beside it before. That saves a
    sync for each data file, whose checkpoint is created in the same folder.

    Files and folders are for this user alone, whatever the umask says. Where the root has the set-group-ID bit, its
    group may do with them what it may do with the root: executors of several users share a group then.
    """

    is_remote = False

    def __init__(self, root: str) -> None:
        self._root = Path(root).absolute()
        #: Bits that the group of the root has; None until it was looked at.
        self._shared: int | None = None

    def read(self, path: str) -> bytes:
        return (self._root / path).read_bytes()

    def read_at_most(self, path: str, max_bytes: int) -> bytes:
        with (self._root / path).open("rb") as file:
            # So many bytes are allocated before they are read.
            return file.read(min(max_bytes, os.fstat(file.fileno()).st_size + 1))

    def open(self, path: str) -> Any:
        return (self._root / path).open("rb")

    def write(self, path: str, data: bytes | memoryview, *, is_durable: bool = True) -> None:
        target = self._root / path
        unfinished = self._write_unfinished(target, data, is_durable=is_durable)
        try:
            unfinished.replace(target)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise

    def create(self, path: str, data: bytes | memoryview) -> bool:
        target = self._root / path
        unfinished = self._write_unfinished(target, data)
        try:
            _sync_folder(target.parent)
            os.link(unfinished, target)
        except FileExistsError:
            return False
        finally:
            unfinished.unlink(missing_ok=True)
        _sync_folder(target.parent)
        return True

    def size(self, path: str) -> int:
        return (self._root / path).stat().st_size

    def modified_us(self, path: str) -> int | None:
        return (self._root / path).stat().st_mtime_ns // 1000

    def list(self, prefix: str) -> list[StoredFile]:
        return list(_files(str(self._root / prefix), f"{prefix}/" if prefix else ""))

    def delete(self, path: str) -> None:
        target = self._root / path
        target.unlink(missing_ok=True)
        for folder in target.parents:
            # An object store has no folders to leave behind; stop at the first that is still used.
            if folder == self._root:
                break
            try:
                folder.rmdir()
            except OSError:
                break

    def _write_unfinished(self, target: Path, data: bytes | memoryview, *, is_durable: bool = True) -> Path:
        unfinished = target.parent / f"{UNFINISHED_PREFIX}{target.name[:80]}-{secrets.token_hex(8)}"
        try:
            file = _create(unfinished)
        except FileNotFoundError:
            self._make_folder(target.parent)
            file = _create(unfinished)
        try:
            with file:
                if self._shared_bits():
                    os.fchmod(file.fileno(), 0o600 | self._shared_bits() & 0o060)
                file.write(data)
                file.flush()
                if is_durable:
                    os.fsync(file.fileno())
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
        return unfinished

    def _make_folder(self, folder: Path) -> None:
        """Create a folder and its parents, durably: an entry of a folder that is lost is lost with it."""
        missing = [path for path in (folder, *folder.parents) if not path.exists()]
        for path in reversed(missing):
            try:
                path.mkdir(mode=0o700 if path.is_relative_to(self._root) else 0o777)
            except (FileExistsError, FileNotFoundError):
                # Made, or removed as an empty one, by another process.
                continue
            if path != self._root and path.is_relative_to(self._root) and self._shared_bits():
                path.chmod(0o2700 | self._shared_bits())
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in missing:
            _sync_folder(path.parent)

    def _shared_bits(self) -> int:
        if self._shared is None:
            self._shared = group_bits(self._root)
        return self._shared


def _files(folder: str, prefix: str) -> Iterator[StoredFile]:
    """All files below a folder. Without path objects: there may be many, and they are listed every few epochs."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        # There is none, or it is another user's: nothing that could be read.
        return
    for entry in entries:
        if entry.is_dir():
            if not entry.is_symlink():
                yield from _files(entry.path, f"{prefix}{entry.name}/")
            continue
        try:
            yield StoredFile(f"{prefix}{entry.name}", entry.stat().st_size)
        except FileNotFoundError:
            # Renamed or deleted by another process since the folder was read.
            continue


def _create(path: Path) -> BinaryIO:
    return open(path, "xb", opener=private_opener)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
