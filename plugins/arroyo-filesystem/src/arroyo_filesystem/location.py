"""Where files are: a path inside an fsspec filesystem, and the few operations that differ by storage."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit, urlunsplit

import fsspec
from fsspec.implementations.local import LocalFileSystem

from arroyo_core.api.policy import current_policy, local_path
from arroyo_core.api.urls import absolute_url
from arroyo_core.errors import ConfigError
from arroyo_filesystem.patience import PatientFileSystem

#: User and password behind the protocol of a URL, also of one inside a chain.
_USER = re.compile(r"(?<=://)[^/]*@")


@dataclass(frozen=True, slots=True)
class Login:
    """User and password of a URL: some filesystems, such as HTTP, have them in the path of each file."""

    #: With the `@` behind it; empty where there is none.
    user: str = field(default="", repr=False)
    #: Protocol and host that it is for.
    host: str = ""

    @classmethod
    def of(cls, url: str) -> Login:
        found = _USER.search(url) if "::" not in url else None
        return cls(found.group(), _host(without_login(url))) if found else cls()

    def put_into(self, path: str) -> str:
        """A path that is kept without it, as the filesystem takes it."""
        bare = without_login(path)
        return bare.replace("://", f"://{self.user}", 1) if self.user and _host(bare) == self.host else path


def without_login(text: str) -> str:
    """A URL, or a path of a filesystem, as it may be stored."""
    return _USER.sub("", text)


def _host(url: str) -> str:
    return "/".join(url.split("/")[:3])


@dataclass(frozen=True, slots=True)
class Location:
    """A path (without its protocol) in a filesystem."""

    #: fsspec's for local files, else a `PatientFileSystem`; None for what planning may not open.
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
    def login(self) -> Login:
        return Login.of(self.url)

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
    if current_policy().is_untrusted and local_path(url) is None:
        # To open others may ask a server, or unpack an archive: whoever wants to read is refused.
        return Location(None, url, url)
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
