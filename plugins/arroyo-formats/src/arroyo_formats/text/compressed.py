"""Text files that are compressed as a whole: told by their names, opened as if they were not."""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Callable
from pathlib import PurePosixPath
from types import TracebackType
from typing import Any, BinaryIO, cast

from fsspec.compression import compr

from arroyo_formats.files import DamagedFileError, is_damage, open_for_reading

#: The extensions that fsspec opens with `compression="infer"`.
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".xz": "xz"}
GZIP_LEVEL = 4
#: What a decompressor is asked for at a time.
PIECE_BYTES = 2**17
#: What a decompressor is given at a time that gives back all it can make of it, which may be 30,000 times as much.
ZSTD_BYTES = 2**12


def compression_of(path: str) -> str | None:
    """How a text file is compressed, by its name."""
    return COMPRESSIONS.get(PurePosixPath(path).suffix.lower())


def open_text(fs: Any, path: str) -> BinaryIO:
    """The bytes of a text file, decompressed as its name tells; reading raises `DamagedFileError`."""
    compression = compression_of(path)
    if compression is None:
        return open_for_reading(fs, path)
    if compression == "zstd" and compression in compr:
        stream: Any = ZstdStream(open_for_reading(fs, path))
    else:
        stream = fs.open(path, "rb", compression=compression)
    return cast(BinaryIO, DecompressedStream(stream, path))


class DecompressedStream:
    """Gives all bytes before a damage, and then the `DamagedFileError`.

    What a decompressor still gives before it fails depends on how much it is asked for at a time. So it is always
    asked for the same, from the beginning: the bytes before the damage are the same in every attempt.
    """

    def __init__(self, stream: Any, path: str) -> None:
        self._stream = stream
        self._path = path
        self._held = b""
        self._is_over = False
        self._damage: DamagedFileError | None = None

    def read(self, size: int) -> bytes:
        pieces, have = [self._held], len(self._held)
        while have < size and not self._is_over:
            pieces.append(self._next())
            have += len(pieces[-1])
        data = b"".join(pieces)
        self._held = data[size:]
        if not data and self._damage is not None:
            raise self._damage
        return data[:size]

    def close(self) -> None:
        self._stream.close()

    def __enter__(self) -> DecompressedStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _next(self) -> bytes:
        try:
            piece: bytes = self._stream.read1(PIECE_BYTES)
        except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
            if isinstance(error, OSError) and not is_damage(error):
                raise
            self._damage = DamagedFileError(self._path, str(error))
            piece = b""
        self._is_over = not piece
        return piece


class ZstdStream:
    """Frames of zstandard. Its own reader takes a file that is cut off for a whole one."""

    def __init__(self, raw: BinaryIO) -> None:
        import zstandard

        self._raw = raw
        self._make = zstandard.ZstdDecompressor().decompressobj
        self._error: type[Exception] = zstandard.ZstdError
        self._frame: Any = None

    def read1(self, size: int) -> bytes:
        """What the next bytes of the file give, however much; nothing at its end. Raises `EOFError`, `OSError`."""
        while True:
            given = self._frame.unused_data if self._frame is not None and self._frame.eof else b""
            if given or (self._frame is not None and self._frame.eof):
                self._frame = None
            given = given or self._raw.read(ZSTD_BYTES)
            if not given:
                if self._frame is not None:
                    raise EOFError("Compressed file ended before the end of a frame was reached")
                return b""
            self._frame = self._frame or self._make()
            try:
                data: bytes = self._frame.decompress(given)
            except self._error as error:
                raise OSError(str(error)) from error
            if data:
                return data

    def close(self) -> None:
        self._raw.close()


def text_stream(stream: BinaryIO, compression: str) -> tuple[BinaryIO, Callable[[], None]]:
    """Where text goes, and what to call after its end."""
    if compression != "gzip":
        return stream, lambda: None
    # No name and no time: the same rows give the same bytes.
    wrapped = gzip.GzipFile(filename="", fileobj=stream, mode="wb", compresslevel=GZIP_LEVEL, mtime=0)
    return cast(BinaryIO, wrapped), wrapped.close
