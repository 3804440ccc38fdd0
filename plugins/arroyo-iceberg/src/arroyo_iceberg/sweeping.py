"""Deletes files that no snapshot refers to: of attempts that did not count, and of commits that were refused."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow.fs as pafs

if TYPE_CHECKING:
    from pyiceberg.table import Table

_OBJECT_STORAGE = "write.object-storage.enabled"


def delete_files(table: Table, paths: Iterable[str]) -> None:
    """Delete what is there of these files; what the storage does not delete now is an orphan."""
    for path in paths:
        try:
            table.io.delete(path)
        except OSError:
            continue


def sweep_epoch(table: Table, folder: str, keep: Collection[str]) -> None:
    """Delete all files of an epoch's folder but those that are committed with it; others are of nobody.

    Where files are spread by hashes there is no such folder, and `arroyo iceberg orphans` finds them.
    """
    if str(table.metadata.properties.get(_OBJECT_STORAGE, "false")).lower() == "true":
        return
    place = f"{table.location_provider().data_path.rstrip('/')}/{folder}"
    delete_files(table, [path for path, _ in list_files(table, place) if path not in keep])


def list_files(table: Table, place: str) -> Iterator[tuple[str, datetime | None]]:
    """All files below a folder or URL of the table, as the table writes their paths, and when they were changed.

    None where the files are read through another library than pyarrow.
    """
    from pyiceberg.io.pyarrow import PyArrowFileIO

    io = table.io
    if not isinstance(io, PyArrowFileIO):
        return
    scheme, netloc, path = io.parse_location(place, io.properties)
    fs = io.fs_by_scheme(scheme, netloc)
    prefix = place.removesuffix(path) if place.endswith(path) else ""
    for info in fs.get_file_info(pafs.FileSelector(path, allow_not_found=True, recursive=True)):
        if info.type is pafs.FileType.File:
            yield f"{prefix}{info.path}", info.mtime
