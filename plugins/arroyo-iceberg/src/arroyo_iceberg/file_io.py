"""Opens files of a table: metadata and manifests, which are read as a whole, have a limit."""

from __future__ import annotations

import gzip

from pyiceberg.io import InputStream
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO

from arroyo_core.api.limits import Limit
from arroyo_core.errors import DataError
from arroyo_iceberg.limits import MANIFEST_BYTES, METADATA_BYTES

_PACKED = ".gz.metadata.json"
_PIECE_BYTES = 2**20


class LimitedFileIO(PyArrowFileIO):
    """That of the library, which reads such files whatever their size. Named in the properties of a catalog."""

    def new_input(self, location: str) -> LimitedFile:
        found = super().new_input(location)
        return LimitedFile(location, found._path, found._filesystem, found._buffer_size)


class LimitedFile(PyArrowFile):
    def open(self, seekable: bool = True) -> InputStream:
        """Raises `DataError` for metadata and manifests that are too large; data files are read in pieces."""
        limit = _limit_of(self.location)
        if limit is not None:
            self._check(limit, len(self))
            if self.location.endswith(_PACKED):
                self._check(limit, self._unpacked_bytes(limit.value))
        return super().open(seekable)

    def _check(self, limit: Limit, size: int) -> None:
        problem = limit.problem(size)
        if problem is not None:
            raise DataError(f"{self.location} is too large: {problem}")

    def _unpacked_bytes(self, enough: int) -> int:
        """What the file unpacks to, as far as it is looked at: a piece more than `enough`."""
        size = 0
        with super().open() as packed, gzip.open(packed) as unpacked:
            while size <= enough and (piece := unpacked.read(_PIECE_BYTES)):
                size += len(piece)
        return size


def _limit_of(location: str) -> Limit | None:
    if location.endswith(".metadata.json"):
        return METADATA_BYTES
    return MANIFEST_BYTES if location.endswith(".avro") else None
