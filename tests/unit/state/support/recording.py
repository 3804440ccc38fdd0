"""A store in memory that remembers what a crash at any of its writes would have left behind."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass

from arroyo_core.state import StorageProvider
from arroyo_core.state.storage import StoredFile


class DictDriver:
    """Files in a dictionary."""

    is_remote = False

    def __init__(self, files: dict[str, bytes] | None = None) -> None:
        self.files = dict(files or {})

    def read(self, path: str) -> bytes:
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path]

    def open(self, path: str) -> io.BytesIO:
        return io.BytesIO(self.read(path))

    def write(self, path: str, data: bytes | memoryview, *, is_durable: bool = True) -> None:
        self.files[path] = bytes(data)

    def create(self, path: str, data: bytes | memoryview) -> bool:
        if path in self.files:
            return False
        self.files[path] = bytes(data)
        return True

    def size(self, path: str) -> int:
        return len(self.read(path))

    def modified_us(self, path: str) -> int | None:
        self.read(path)
        return None

    def list(self, prefix: str) -> list[StoredFile]:
        folder = f"{prefix}/" if prefix else ""
        return [StoredFile(path, len(data)) for path, data in self.files.items() if path.startswith(folder)]

    def delete(self, path: str) -> None:
        self.files.pop(path, None)


@dataclass(frozen=True)
class CrashPoint:
    """The store as a crash at one call leaves it."""

    name: str
    files: dict[str, bytes]
    #: The last epoch whose publication had returned.
    published: int


class RecordingDriver(DictDriver):
    """Notes the store before, after and half-way through every call that changes it.

    A write may leave half of a file under its name: only names that nobody refers to yet are written.
    A create is whole or nothing, as the protocol demands of a store; half-way it leaves half of an unfinished file.
    """

    def __init__(self, published: Callable[[], int]) -> None:
        super().__init__()
        self.points: list[CrashPoint] = []
        self._published = published

    def write(self, path: str, data: bytes | memoryview, *, is_durable: bool = True) -> None:
        self._note(f"write {path}", {path: bytes(data)[: len(data) // 2]})
        super().write(path, data)
        self._note_after(f"write {path}")

    def create(self, path: str, data: bytes | memoryview) -> bool:
        folder, _, name = path.rpartition("/")
        self._note(f"create {path}", {f"{folder}/.unfinished-{name}-1": bytes(data)[: len(data) // 2]})
        created = super().create(path, data)
        self._note_after(f"create {path}")
        return created

    def delete(self, path: str) -> None:
        self._note(f"delete {path}", {})
        super().delete(path)
        self._note_after(f"delete {path}")

    def _note(self, name: str, torn: dict[str, bytes]) -> None:
        published = self._published()
        self.points.append(CrashPoint(f"before {name}", dict(self.files), published))
        if torn:
            self.points.append(CrashPoint(f"half-way {name}", self.files | torn, published))

    def _note_after(self, name: str) -> None:
        self.points.append(CrashPoint(f"after {name}", dict(self.files), self._published()))


def dict_storage(files: dict[str, bytes]) -> StorageProvider:
    return StorageProvider("dict://", driver=DictDriver(files))
