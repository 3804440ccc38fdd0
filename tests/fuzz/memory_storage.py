"""Files of state in memory, so that an input costs no disk."""

from __future__ import annotations

import io
from collections.abc import Mapping

from arroyo_core.state import StorageProvider
from arroyo_core.state.storage import StoredFile

URL = "memory://fuzz"


class MemoryDriver:
    """A dict of files; the same calls as any store."""

    is_remote = False

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = dict(files)

    def read(self, path: str) -> bytes:
        return self._get(path)

    def open(self, path: str) -> io.BytesIO:
        return io.BytesIO(self._get(path))

    def write(self, path: str, data: bytes | memoryview, *, is_durable: bool = True) -> None:
        self.files[path] = bytes(data)

    def create(self, path: str, data: bytes | memoryview) -> bool:
        if path in self.files:
            return False
        self.files[path] = bytes(data)
        return True

    def size(self, path: str) -> int:
        return len(self._get(path))

    def modified_us(self, path: str) -> int | None:
        return None

    def list(self, prefix: str) -> list[StoredFile]:
        folder = f"{prefix}/" if prefix else ""
        return [StoredFile(path, len(data)) for path, data in self.files.items() if path.startswith(folder)]

    def delete(self, path: str) -> None:
        self.files.pop(path, None)

    def _get(self, path: str) -> bytes:
        try:
            return self.files[path]
        except KeyError:
            raise FileNotFoundError(path) from None


def memory_storage(files: Mapping[str, bytes]) -> StorageProvider:
    return StorageProvider(URL, driver=MemoryDriver(files), attempts=1)
