"""Which files a source reads: a file, a folder or a glob becomes a sorted list, fixed once per job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from arroyo_core.errors import ConfigError, ExternalError
from arroyo_filesystem.formats.format import EXTENSIONS, Format, format_of
from arroyo_filesystem.location import Location

GLOB_CHARACTERS = "*?["
#: Keys of an fsspec `info` that change with the content, best first; a listing spells them as `info` does.
VERSION_KEYS = ("ETag", "etag", "mtime")


class File(msgspec.Struct, frozen=True, array_like=True):
    """A file as it was when it was listed."""

    path: str
    size: int
    #: Another one means other content, as `key=value`; empty where the filesystem tells nothing.
    version: str = ""

    def is_changed(self, now: File) -> bool:
        """Whether the file is another one now; versions of different kinds say nothing."""
        kind, is_known, _ = self.version.partition("=")
        is_comparable = bool(is_known) and now.version.startswith(f"{kind}=")
        return now.size != self.size or (is_comparable and now.version != self.version)


def file_of_info(info: dict[str, Any]) -> File:
    """A file from what fsspec tells about it."""
    version = next((f"{key}={info[key]}" for key in VERSION_KEYS if info.get(key)), "")
    return File(info["name"], int(info["size"] or 0), version)


def list_files(location: Location, wanted: Format | None) -> list[File]:
    """The files to read, sorted by path.

    A folder gives every file below it with an extension of the wanted format (of any format,
    where none is wanted), but nothing whose path below the folder has a part that begins with `_`
    or `.`; a glob gives what it matches, with the same exception below its fixed part. Raises
    `ConfigError` when there is none.
    """
    try:
        infos, root = _find(location)
    except PermissionError as error:
        raise ConfigError(f"cannot read {location.url!r}: {error}", field="path", value=location.url) from error
    except FileNotFoundError as error:
        raise ConfigError(f"there is no {location.url!r}", field="path", value=location.url) from error
    except OSError as error:
        raise ExternalError(f"cannot list {location.url!r}: {error}") from error
    files = [file_of_info(info) for info in infos if info["type"] == "file" and not _is_hidden(info["name"], root)]
    if root is not None and not _has_glob(location.path):
        files = [file for file in files if _has_extension(file, wanted)]
    if not files:
        kinds = ", ".join(extension for extension, kind in EXTENSIONS.items() if wanted is None or wanted.named is kind)
        hint = "" if _has_glob(location.path) else f" (looked for {kinds})"
        raise ConfigError(f"no file matches {location.url!r}{hint}", field="path", value=location.url)
    return sorted(files, key=lambda file: file.path)


def resolve_format(files: Sequence[File], written: str) -> Format:
    """The one format of all files: as configured, else as all names tell; raises `ConfigError` otherwise."""
    if written:
        return parse_format(written)
    told = {format_of(file.path) for file in files}
    if len(told) == 1 and (only := told.pop()) is not None:
        return only
    known = sorted({str(kind) for kind in told if kind is not None})
    found = f"the files are {' and '.join(known)}" if len(known) > 1 else f"the name {files[0].path!r} does not tell it"
    raise ConfigError(f"format is needed: {found}", field="format", allowed=list(Format))


def parse_format(written: str) -> Format:
    """A format by its name; raises `ConfigError`."""
    try:
        return Format(written.lower())
    except ValueError:
        raise ConfigError(f"unknown format {written!r}", field="format", value=written, allowed=list(Format)) from None


def _find(location: Location) -> tuple[list[dict[str, Any]], str | None]:
    """Everything found, and the folder below which hidden names do not count (None for one file)."""
    fs, path = location.fs, location.path
    if _has_glob(path):
        # A name that is literally there wins over its meaning as a pattern.
        if fs.exists(path) and fs.isfile(path):
            return [fs.info(path)], None
        return list(fs.glob(path, detail=True).values()), fixed_folder(path)
    info = fs.info(path)
    if info["type"] == "file":
        return [info], None
    return list(fs.find(path, detail=True).values()), path


def fixed_folder(path: str) -> str:
    """The folder that a path names: a glob up to its first folder with a pattern, else the path itself."""
    if not _has_glob(path):
        return path
    fixed = path[: min(path.index(char) for char in GLOB_CHARACTERS if char in path)]
    return fixed.rpartition("/")[0]


def _has_glob(path: str) -> bool:
    return any(char in path for char in GLOB_CHARACTERS)


def _is_hidden(path: str, root: str | None) -> bool:
    if root is None:
        return False
    # `_day=1` is a partition by a column `_day`, not a hidden folder.
    parts = path.removeprefix(root).split("/")
    return any(part.startswith(".") or (part.startswith("_") and "=" not in part) for part in parts)


def _has_extension(file: File, wanted: Format | None) -> bool:
    told = format_of(file.path)
    return told is not None and (wanted is None or wanted.named is told)
