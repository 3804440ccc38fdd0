"""Which files a source reads: a file, a folder or a glob becomes a sorted list, fixed once per job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import msgspec
from arroyo_formats import file_formats
from arroyo_formats.text.compressed import compression_of

from arroyo_core.api.policy import current_policy
from arroyo_core.errors import ConfigError, ExternalError
from arroyo_filesystem.limits import LISTED_FILES, PATTERN_STARS
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


def list_files(location: Location, wanted: str | None) -> list[File]:
    """The files to read, sorted by path.

    A folder gives every file below it with an ending of the wanted format (of any format that names
    tell, where none is wanted), but nothing whose path below the folder has a part that begins with `_`
    or `.`; a glob gives what it matches, with the same exception below its fixed part. Raises
    `ConfigError` when there is none.
    """
    policy = current_policy()
    policy.check_url(fixed_folder(location.url), field="path")
    if _has_glob(location.path):
        PATTERN_STARS.check(_stars(location.path), field="path")
    try:
        infos, root = _find(location)
    except PermissionError as error:
        raise ConfigError(f"cannot read {location.url!r}: {error}", field="path", value=location.url) from error
    except FileNotFoundError as error:
        raise ConfigError(f"there is no {location.url!r}", field="path", value=location.url) from error
    except OSError as error:
        raise ExternalError(f"cannot list {location.url!r}: {error}") from error
    LISTED_FILES.check(len(infos), field="path")
    for info in infos:
        # A folder below the root may have links to others.
        policy.check_path(info["name"], field="path")
    files = [file_of_info(info) for info in infos if info["type"] == "file" and not _is_hidden(info["name"], root)]
    endings = told_endings() if wanted is None else {ending: [wanted] for ending in file_formats()[wanted].endings}
    if root is not None and not _has_glob(location.path):
        files = [file for file in files if formats_of(file.path, endings)]
    if not files:
        hint = "" if _has_glob(location.path) else f" (looked for {', '.join(endings)})"
        raise ConfigError(f"no file matches {location.url!r}{hint}", field="path", value=location.url)
    return sorted(files, key=lambda file: file.path)


def tell_format(files: Sequence[File]) -> str:
    """The one format that the names of all files tell; raises `ConfigError` where they do not."""
    endings = told_endings()
    told = {tuple(formats_of(file.path, endings)) for file in files}
    names = sorted({name for each in told for name in each})
    if len(told) == 1 and len(names) == 1:
        return names[0]
    found = f"the files are {' and '.join(names)}" if len(names) > 1 else f"the name {files[0].path!r} does not tell it"
    raise ConfigError(f"format is needed: {found}", field="format", allowed=sorted(file_formats()))


def told_endings() -> Mapping[str, Sequence[str]]:
    """The endings of names that tell a format, each with the formats that claim it."""
    endings: dict[str, list[str]] = {}
    for name, files in file_formats().items():
        for ending in files.endings if files.is_told_by_name else ():
            endings.setdefault(ending, []).append(name)
    return endings


def formats_of(path: str, endings: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """The formats that a name tells, looking through a compression suffix; empty where it tells none."""
    name = PurePosixPath(path)
    if not compression_of(path):
        return endings.get(name.suffix.lower(), ())
    known = file_formats()
    return [found for found in endings.get(PurePosixPath(name.stem).suffix.lower(), ()) if known[found].has_lines]


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


def _stars(path: str) -> int:
    names = path.split("/")
    return max(names.count("**"), *(name.count("*") for name in names if name != "**"), 0)


def _is_hidden(path: str, root: str | None) -> bool:
    if root is None:
        return False
    # `_day=1` is a partition by a column `_day`, not a hidden folder.
    parts = path.removeprefix(root).split("/")
    return any(part.startswith(".") or (part.startswith("_") and "=" not in part) for part in parts)
