"""Which files a source reads: a file, a folder or a glob becomes a sorted list, fixed once per job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

import msgspec
from arroyo_formats import file_formats
from arroyo_formats.text.compressed import compression_of

from arroyo_core.api.policy import current_policy
from arroyo_core.errors import ConfigError, ExternalError
from arroyo_filesystem.limits import LISTED_FILES, PATTERN_STARS
from arroyo_filesystem.location import Location
from arroyo_filesystem.outputs import Outputs, is_marked

GLOB_CHARACTERS = "*?["
#: How often a folder is listed again that is being compacted meanwhile.
LOOKS = 20
#: Keys of an fsspec `info` that change with the content, best first; a listing spells them as `info` does.
VERSION_KEYS = ("ETag", "etag", "mtime")
#: Keys of an `info` with the time of the last change.
MODIFIED_KEYS = ("mtime", "LastModified", "last_modified", "updated", "modified", "created")


class File(msgspec.Struct, frozen=True, array_like=True):
    """A file as it was when it was listed."""

    path: str
    size: int
    #: Another one means other content, as `key=value`; empty where the filesystem tells nothing.
    version: str = ""
    #: When it was changed; 0 where the filesystem tells nothing.
    modified_us: int = 0
    #: Stays the same when it is renamed; empty where the filesystem tells nothing.
    identity: str = ""

    def is_changed(self, now: File) -> bool:
        """Whether the file is another one now; versions of different kinds say nothing."""
        kind, is_known, _ = self.version.partition("=")
        is_comparable = bool(is_known) and now.version.startswith(f"{kind}=")
        return now.size != self.size or (is_comparable and now.version != self.version)


def file_of_info(info: dict[str, Any]) -> File:
    """A file from what fsspec tells about it."""
    version = next((f"{key}={info[key]}" for key in VERSION_KEYS if info.get(key)), "")
    return File(info["name"], int(info["size"] or 0), version, _modified_us(info), _identity(info, version))


def _modified_us(info: dict[str, Any]) -> int:
    found = next((info[key] for key in MODIFIED_KEYS if info.get(key)), 0)
    if isinstance(found, str):
        try:
            found = datetime.fromisoformat(found)
        except ValueError:
            return 0
    return round((found.timestamp() if isinstance(found, datetime) else float(found)) * 1e6)


def _identity(info: dict[str, Any], version: str) -> str:
    """A local file keeps its inode and its time, an object its ETag, which a copy of the same content has as well."""
    if info.get("ino") and info.get("mtime"):
        return f"ino={info['ino']} mtime={info['mtime']} size={info['size']}"
    # Of nothing there are many copies.
    return f"{version} size={info['size']}" if version.lower().startswith("etag=") and info["size"] else ""


def list_files(location: Location, wanted: str | None, *, may_be_empty: bool = False) -> list[File]:
    """The files to read, sorted by path.

    A folder gives every file below it with an ending of the wanted format (of any format that names
    tell, where none is wanted), but nothing whose path below the folder has a part that begins with `_`
    or `.`; a glob gives what it matches, with the same exception below its fixed part. Raises
    `ConfigError` when there is none, or not even the folder, unless it `may_be_empty`.
    """
    policy = current_policy()
    policy.check_url(fixed_folder(location.url), field="path")
    if has_glob(location.path):
        PATTERN_STARS.check(_stars(location.path), field="path")
    try:
        infos, root = _find_output(location)
    except PermissionError as error:
        raise ConfigError(f"cannot read {location.url!r}: {error}", field="path", value=location.url) from error
    except FileNotFoundError as error:
        if may_be_empty:
            return []
        raise ConfigError(f"there is no {location.url!r}", field="path", value=location.url) from error
    except OSError as error:
        raise ExternalError(f"cannot list {location.url!r}: {error}") from error
    LISTED_FILES.check(len(infos), field="path")
    for info in infos:
        # A folder below the root may have links to others.
        policy.check_path(info["name"], field="path")
    files = [file_of_info(info) for info in infos if info["type"] == "file" and not is_hidden(info["name"], root)]
    endings = told_endings() if wanted is None else {ending: [wanted] for ending in file_formats()[wanted].endings}
    if root is not None and not has_glob(location.path):
        files = [file for file in files if formats_of(file.path, endings)]
    if not files and not may_be_empty:
        hint = "" if has_glob(location.path) else f" (looked for {', '.join(endings)})"
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
    if has_glob(path):
        # A name that is literally there wins over its meaning as a pattern.
        if fs.exists(path) and fs.isfile(path):
            return [fs.info(path)], None
        return list(fs.glob(path, detail=True).values()), fixed_folder(path)
    info = fs.info(path)
    if info["type"] == "file":
        return [info], None
    return list(fs.find(path, detail=True).values()), path


def _find_output(location: Location) -> tuple[list[dict[str, Any]], str | None]:
    """As `_find`, where files of sinks are compacted without those that do not count, however far this is."""
    infos, root = _find(location)
    if root is None:
        return infos, root
    before = _outputs(location, root, infos)
    for _ in range(LOOKS):
        if not before.records:
            return infos, root
        # What is replaced between two looks shows in the records: then neither is of one moment.
        location.fs.invalidate_cache()
        infos, root = _find(location)
        after = _outputs(location, root or fixed_folder(location.path), infos)
        if after.records == before.records:
            hidden = after.hidden
            return [info for info in infos if info["name"] not in hidden], root
        before = after
    raise ExternalError(f"{location.url!r} is compacted faster than it can be listed")


def _outputs(location: Location, root: str, infos: Sequence[Mapping[str, Any]]) -> Outputs:
    outputs = Outputs(location, root, (info["name"] for info in infos))
    if outputs.doubtful is not None:
        raise ExternalError(
            f"{outputs.doubtful!r} replaces files that are still there, and the folders above, whose records say which "
            "of them count, may not be read: try again when `arroyo files compact` is done, or read the sink's folder"
        )
    return outputs


def replacing_files(location: Location, files: Sequence[File]) -> list[File]:
    """Files of a listing whose rows were in others before, by the records of compaction."""
    if not any(is_marked(file.path) for file in files):
        return []
    outputs = Outputs(location, fixed_folder(location.path), (file.path for file in files))
    return [file for file in files if outputs.replaces(file.path)]


def fixed_folder(path: str) -> str:
    """The folder that a path names: a glob up to its first folder with a pattern, else the path itself."""
    if not has_glob(path):
        return path
    fixed = path[: min(path.index(char) for char in GLOB_CHARACTERS if char in path)]
    return fixed.rpartition("/")[0]


def has_glob(path: str) -> bool:
    """Whether a path is a pattern."""
    return any(char in path for char in GLOB_CHARACTERS)


def _stars(path: str) -> int:
    names = path.split("/")
    return max(names.count("**"), *(name.count("*") for name in names if name != "**"), 0)


def is_hidden(path: str, root: str | None) -> bool:
    """Whether a part of a path below `root` says that it is not data."""
    if root is None:
        return False
    # `_day=1` is a partition by a column `_day`, not a hidden folder.
    parts = path.removeprefix(root).split("/")
    return any(part.startswith(".") or (part.startswith("_") and "=" not in part) for part in parts)
