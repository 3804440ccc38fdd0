"""Where a table is, and what is done there: the library opens its log, and files are read and written beside it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.fs
from fsspec.implementations.arrow import ArrowFSWrapper
from fsspec.implementations.local import LocalFileSystem

from arroyo_core.api.policy import current_policy, local_path
from arroyo_core.api.urls import absolute_url, redact_url
from arroyo_core.errors import ConfigError, DataError, ExternalError
from arroyo_delta.log_depth import LOG_FOLDER, check_log

if TYPE_CHECKING:
    from deltalake import DeltaTable

BUFFER_BYTES = 2**20
#: Colours, which the library has in its messages.
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
#: How the library begins what a store says.
_STORE_FAILURE = re.compile(r"Generic \S+ error")
_PANIC = "PanicException"
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
#: With it a store without conditional writes lets two drivers write the same entry of the log.
_UNSAFE_OPTIONS = ("aws_s3_allow_unsafe_rename", "allow_unsafe_rename")


@dataclass(frozen=True, slots=True)
class TableLocation:
    """A table's folder. `url` is absolute; for local files it is a plain path."""

    url: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def is_local(self) -> bool:
        return "://" not in self.url

    @property
    def place(self) -> str:
        """Where it is, without user, password and query."""
        return redact_url(self.url)

    def child(self, name: str) -> str:
        return f"{self.url.rstrip('/')}/{name}"

    def open(self, version: int | None = None) -> DeltaTable | None:
        """The table as it is now, or in a version; None where there is none.

        Raises `ExternalError` in an outage, and `DataError` for a log that would end the process.
        """
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        if self.is_local and not Path(self.url, LOG_FOLDER).is_dir():
            return None
        check_log(self.files(), self.place, version)
        with self.translating("cannot open"):
            try:
                return DeltaTable(self.url, version=version, storage_options=dict(self.options) or None)
            except TableNotFoundError:
                return None

    def files(self) -> Files:
        return LocalFiles(self) if self.is_local else StoredFiles(self)

    @contextmanager
    def translating(self, what: str) -> Iterator[None]:
        """Errors of the library as ours: it says `DeltaError` or `OSError` for whatever a storage does."""
        from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

        try:
            yield
        except (TableNotFoundError, CommitFailedError):
            raise
        except (DeltaError, OSError) as error:
            raise ExternalError(f"{what} the table {self.place}: {describe(error)}") from error
        except BaseException as error:
            # A panic of native code, which no handler of exceptions would catch.
            if type(error).__name__ != _PANIC:
                raise
            raise DataError(f"{what} the table {self.place}: its library fails: {describe(error)}") from error


class Files:
    """Files in a table's folder, by their names there."""

    def open_input(self, name: str) -> Any:
        """For readers of Arrow; raises `FileNotFoundError`."""
        raise NotImplementedError

    def fsspec(self) -> Any:
        """The storage as readers of formats want it."""
        raise NotImplementedError

    def path(self, name: str) -> str:
        """What a file is called there."""
        raise NotImplementedError

    def read(self, name: str, max_bytes: int) -> bytes | None:
        """A small file, one byte more than `max_bytes` at most; None where there is none."""
        raise NotImplementedError

    def create(self, name: str) -> BinaryIO:
        raise NotImplementedError

    def close(self, name: str, stream: BinaryIO) -> None:
        """End a file so that it lasts."""
        raise NotImplementedError

    def remove(self, name: str) -> None:
        """Delete a file; it may be gone."""
        raise NotImplementedError

    def exists(self, name: str) -> bool:
        """Whether there is such a file; raises `ExternalError` in an outage."""
        raise NotImplementedError

    def sizes(self, folder: str) -> dict[str, int]:
        """The files in a folder, which need not be there, by name."""
        raise NotImplementedError


class LocalFiles(Files):
    def __init__(self, location: TableLocation) -> None:
        self._root = location.url

    def open_input(self, name: str) -> Any:
        return pyarrow.fs.LocalFileSystem().open_input_file(self.path(name))

    def fsspec(self) -> Any:
        return LocalFileSystem()

    def read(self, name: str, max_bytes: int) -> bytes | None:
        try:
            with Path(self.path(name)).open("rb") as file:
                return file.read(max_bytes + 1)
        except FileNotFoundError:
            return None

    def create(self, name: str) -> BinaryIO:
        path = Path(self.path(name))
        missing = [folder for folder in path.parents if not folder.exists()]
        path.parent.mkdir(parents=True, exist_ok=True)
        for folder in missing:
            _sync_folder(folder.parent)
        return path.open("wb", buffering=BUFFER_BYTES)

    def close(self, name: str, stream: BinaryIO) -> None:
        stream.flush()
        os.fsync(stream.fileno())
        stream.close()
        _sync_folder(Path(self.path(name)).parent)

    def remove(self, name: str) -> None:
        Path(self.path(name)).unlink(missing_ok=True)

    def exists(self, name: str) -> bool:
        return Path(self.path(name)).is_file()

    def sizes(self, folder: str) -> dict[str, int]:
        top = Path(self.path(folder))
        try:
            return {f"{folder}/{path.name}": path.stat().st_size for path in top.iterdir() if path.is_file()}
        except FileNotFoundError:
            return {}

    def path(self, name: str) -> str:
        return f"{self._root}/{name}"


class StoredFiles(Files):
    """On an object store, through the library: with its credentials and its settings."""

    def __init__(self, location: TableLocation) -> None:
        from deltalake.fs import DeltaStorageHandler

        self._location = location
        handler = DeltaStorageHandler(location.url, options=dict(location.options) or None)
        self._fs = pyarrow.fs.PyFileSystem(handler)

    def open_input(self, name: str) -> Any:
        return self._fs.open_input_file(name)

    def fsspec(self) -> Any:
        return ArrowFSWrapper(self._fs)

    def path(self, name: str) -> str:
        return name

    def read(self, name: str, max_bytes: int) -> bytes | None:
        with self._location.translating(f"cannot read {name!r} of"):
            if self._fs.get_file_info(name).type != pyarrow.fs.FileType.File:
                return None
            with self._fs.open_input_file(name) as file:
                return cast(bytes, file.read(max_bytes + 1))

    def create(self, name: str) -> BinaryIO:
        with self._location.translating(f"cannot write {name!r} of"):
            # The library's own files take bytes, and what pyarrow hands on unbuffered may be a buffer.
            return cast(BinaryIO, pa.BufferedOutputStream(self._fs.open_output_stream(name), BUFFER_BYTES))

    def close(self, name: str, stream: BinaryIO) -> None:
        with self._location.translating(f"cannot write {name!r} of"):
            stream.close()

    def remove(self, name: str) -> None:
        with self._location.translating(f"cannot delete {name!r} of"):
            try:
                self._fs.delete_file(name)
            except FileNotFoundError:
                return

    def exists(self, name: str) -> bool:
        with self._location.translating(f"cannot look for {name!r} of"):
            return bool(self._fs.get_file_info(name).type == pyarrow.fs.FileType.File)

    def sizes(self, folder: str) -> dict[str, int]:
        with self._location.translating(f"cannot list {folder!r} of"):
            found = self._fs.get_file_info(pyarrow.fs.FileSelector(folder, allow_not_found=True))
        return {info.path: info.size for info in found if info.type == pyarrow.fs.FileType.File}


def make_location(url: str, options: Mapping[str, str], *, field: str = "table") -> TableLocation:
    """The location of a config's URL; raises `ConfigError`."""
    if not url:
        raise ConfigError(f"{field} is needed", field=field)
    unsafe = [key for key in options if key.lower() in _UNSAFE_OPTIONS and options[key].lower() not in ("", "false")]
    if unsafe:
        raise ConfigError(
            f"{unsafe[0]} would let two writers make the same version of the table, and one of them would be lost",
            field=f"storage_options.{unsafe[0]}",
        )
    path = local_path(url)
    if path is not None:
        url = os.path.normpath(path)
        if _ESCAPE.search(url):
            raise ConfigError(
                "a local path must not look as if it had escapes such as %41: the library would look elsewhere",
                field=field,
                value=url,
            )
    elif "::" in url:
        raise ConfigError("a table is a local folder or one URL", field=field, value=url)
    return TableLocation(absolute_url(url), dict(options))


def check_reading(location: TableLocation, *, field: str = "table") -> None:
    """Raise `RefusedError` where planning may not look at the table."""
    current_policy().check_url(location.url, field=field)


def describe(error: BaseException) -> str:
    """What the library says, on one line."""
    text = _COLOUR.sub("", str(error))
    return " ".join(text.replace("↳", ":").split()) or type(error).__name__


def is_of_store(error: BaseException) -> bool:
    """Whether the library's store has failed, and not what was read from it."""
    return _STORE_FAILURE.search(str(error)) is not None


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
