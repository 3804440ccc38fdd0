"""Class data sharing: Spark's JVM starts in about half the time when it maps the classes that an earlier one loaded.

The first JVM writes the archive when it ends; later ones with the same Java and the same Spark use it. Java checks
an archive before it uses one, and starts without where it does not fit.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from pathlib import Path

from arroyo_core.errors import SetupError
from arroyo_core.local_folders import CLASS_ARCHIVE

#: Raised when we start Spark so that it loads other classes: an archive is mapped with all that it has.
_EDITION = 2

#: The first bytes of a whole archive; Java writes them last.
_MAGIC = (0xF00BABA8).to_bytes(4, "little")

#: A JVM is done with writing by then.
_WRITING_S = 300

#: How many archives there are at most: each takes 90 MB.
_KEPT = 4

_SILENCE = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off", "-Xlog:class+path=off")


def archive_options(java: str, jars: Path) -> list[str]:
    """The options that make a JVM with these jars use an archive, or write one; none where there is no place for it."""
    try:
        folder = _folder()
        if folder is None:
            return []
        archive = folder / f"{_key(java, jars)}.jsa"
        if _is_whole(archive):
            os.utime(archive)
            return [f"-XX:SharedArchiveFile={archive}", *_SILENCE]
        return [f"-XX:ArchiveClassesAtExit={archive}", *_SILENCE] if _claim(archive) else []
    except OSError:
        return []


def _folder() -> Path | None:
    """`ARROYO_CLASS_ARCHIVE`, or one of this user's own; None where it is `off`, or others could write to it."""
    folder = CLASS_ARCHIVE.path()
    if folder is None:
        return None
    try:
        CLASS_ARCHIVE.make(folder)
    except SetupError:
        return None
    return folder


def _key(java: str, jars: Path) -> str:
    """Of the very Java and the very jars; both change when they are installed again."""
    release = Path(java).resolve().parents[1] / "release"
    parts = [
        _EDITION,
        str(release),
        release.read_bytes() if release.exists() else b"",
        str(jars),
        jars.stat().st_mtime_ns,
    ]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _is_whole(archive: Path) -> bool:
    try:
        with archive.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except FileNotFoundError:
        return False


def _claim(archive: Path) -> bool:
    """Whether this process is to write it; what an earlier one left half-written is taken away."""
    with contextlib.suppress(FileNotFoundError):
        if time.time() - archive.stat().st_mtime < _WRITING_S:
            return False
        archive.unlink()
    try:
        archive.touch(exist_ok=False)
    except FileExistsError:
        return False
    _forget_unused(archive.parent)
    return True


def _forget_unused(folder: Path) -> None:
    """Keep those that were used last; a JVM that maps one keeps it."""
    by_use = sorted(folder.glob("*.jsa"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in by_use[_KEPT:]:
        path.unlink(missing_ok=True)
