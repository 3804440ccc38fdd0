"""Text files that are compressed as a whole: told by their names, opened as if they were not."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any, BinaryIO, cast

from arroyo_formats.files import open_for_reading

#: The extensions that fsspec opens with `compression="infer"`.
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".xz": "xz"}
GZIP_LEVEL = 4


def compression_of(path: str) -> str | None:
    """How a text file is compressed, by its name."""
    return COMPRESSIONS.get(PurePosixPath(path).suffix.lower())


def open_text(fs: Any, path: str) -> BinaryIO:
    """The bytes of a text file, decompressed as its name tells."""
    compression = compression_of(path)
    return cast(BinaryIO, fs.open(path, "rb", compression=compression)) if compression else open_for_reading(fs, path)


def text_stream(stream: BinaryIO, compression: str) -> tuple[BinaryIO, Callable[[], None]]:
    """Where text goes, and what to call after its end."""
    if compression != "gzip":
        return stream, lambda: None
    # No name and no time: the same rows give the same bytes.
    wrapped = gzip.GzipFile(filename="", fileobj=stream, mode="wb", compresslevel=GZIP_LEVEL, mtime=0)
    return cast(BinaryIO, wrapped), wrapped.close
