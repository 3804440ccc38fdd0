"""Where files are: a path inside an fsspec filesystem, and the few operations that differ by storage."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit, urlunsplit

import fsspec
from fsspec.implementations.local import LocalFileSystem

from arroyo_core.api.urls import absolute_url
from arroyo_core.errors import ConfigError
from arroyo_filesystem.patience import PatientFileSystem


@dataclass(frozen=True, slots=True)
class Location:
    """A path (without its protocol) in a filesystem."""

    #: fsspec's for local files, else a `PatientFileSystem`.
    fs: Any
    path: str
    #: As the user wrote it, made absolute; for messages.
    url: str

    @property
    def place(self) -> str:
        """Where it is, without user, password and query: they may change, and are nobody else's business."""
        if "://" not in self.url or "::" in self.url:
            return self.url
        parts = urlsplit(self.url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", parts.fragment))

    @property
    def is_local(self) -> bool:
        return isinstance(self.fs, LocalFileSystem)

    def child(self, name: str) -> str:
        return f"{self.path.rstrip('/')}/{name}"


def absolute_path(path: str) -> str:
    """A local path or URL as every task understands it; a plain path without `..` in it."""
    url = absolute_url(path)
    # `abspath` and not `resolve`: a link is the user's choice of name. A glob passes unharmed.
    return url if "://" in url or "::" in url else os.path.abspath(url)  # noqa: PTH100


def open_location(url: str, storage_options: Mapping[str, str], *, field: str) -> Location:
    """The filesystem of a URL; raises `ConfigError` for an unknown protocol or bad options."""
    try:
        fs, path = fsspec.core.url_to_fs(url, **_typed_options(storage_options))
    except (ValueError, ImportError, TypeError) as error:
        raise ConfigError(f"cannot open {url!r}: {error}", field=field, value=url) from error
    return Location(fs if isinstance(fs, LocalFileSystem) else PatientFileSystem(fs), cast(str, path), url)


def make_folder(folder: Path) -> None:
    """Make a local folder and its parents, so that they survive a power cut: a file is lost with its folder."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in missing:
        sync_folder(str(path.parent))


def sync_folder(path: str) -> None:
    """Make the names in a local folder survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _typed_options(options: Mapping[str, str]) -> dict[str, object]:
    """YAML gives strings; filesystems want booleans for flags such as `anon`."""
    flags = {"true": True, "false": False}
    return {key: flags.get(value, value) for key, value in options.items()}
