"""Archives that were made before, on this machine, by what is in them.

A driver holds a lock on the archive that it sends, as long as it lives: Spark reads the file again for each executor
that comes later. Others are removed when they have not been used for a month.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from arroyo_core.local_folders import LocalFolder

PACK_CACHE: Final = LocalFolder(what="cache of packs", variable="ARROYO_PACK_CACHE", name="arroyo-packs")

UNUSED_S: Final = 30 * 86_400
#: What a writer that died has left.
_UNFINISHED_S: Final = 3_600
_PREFIX: Final = ".writing-"

#: Of this process; closing them would give the locks back.
_held: dict[Path, int] = {}


def cached(name: str, make: Callable[[Path], None]) -> tuple[Path, bool]:
    """The archive of that name, and whether it was there before; `make` writes it to the path that it gets.

    It stays as long as this process. Raises what `make` raises, `SetupError` for a folder that others can get at.
    """
    folder = _folder()
    path = folder / name
    if _hold(path):
        return path, True
    part = folder / f"{_PREFIX}{secrets.token_hex(8)}-{name}"
    try:
        make(part)
        part.chmod(0o600)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    _hold(path)
    _remove_unused(folder, now_s=time.time())
    return path, False


def _folder() -> Path:
    path = PACK_CACHE.path()
    if path is not None:
        PACK_CACHE.make(path)
        return path
    path = Path(tempfile.mkdtemp(prefix="arroyo-packs-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def _hold(path: Path) -> bool:
    """Keep others from removing the archive; False where there is none."""
    if path in _held and path.exists():
        return True
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    # Somebody may have removed it before the lock.
    if os.fstat(descriptor).st_nlink == 0:
        os.close(descriptor)
        return False
    os.utime(descriptor)
    _held[path] = descriptor
    return True


def _remove_unused(folder: Path, *, now_s: float) -> None:
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            age_s = now_s - path.lstat().st_mtime
            if path.name.startswith(_PREFIX):
                if age_s > _UNFINISHED_S:
                    path.unlink()
            elif age_s > UNUSED_S:
                _remove(path)


def _remove(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
    finally:
        os.close(descriptor)
