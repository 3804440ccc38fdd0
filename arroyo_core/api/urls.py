"""Paths and URLs as people write them, made into what every process of a job understands alike."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

_LOCAL_PREFIXES = ("file://", "local://")


def absolute_url(url: str) -> str:
    """A local path, or `file://` URL, with `~` for the home folder, made absolute against the working directory.

    Any other URL, and fsspec's chains (`zip://a.csv::b.zip`), as it is. Called by the driver: tasks on other machines
    have other home folders and other working directories. A folder that is really called `~` is written `./~`.
    """
    if "::" in url:
        return url
    for prefix in _LOCAL_PREFIXES:
        if url.startswith(prefix):
            return prefix + _absolute(url.removeprefix(prefix))
    return url if "://" in url else str(Path(_absolute(url)))


def redact_url(url: str) -> str:
    """The URL without user, password and query, as it may be shown and stored."""
    if "://" not in url:
        return url
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", parts.fragment))


def _absolute(path: str) -> str:
    if path.startswith("/"):
        return path
    # Neither resolved nor normalised: a link is the user's choice of name. A glob passes unharmed.
    # By its text: `Path` would take `./~` for `~`.
    return str(Path(os.path.expanduser(path)).absolute())  # noqa: PTH111
