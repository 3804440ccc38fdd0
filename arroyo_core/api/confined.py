"""Names that are read from storage, held to the folder that they belong to.

Whoever can write to a checkpoint URL can write what an operator staged there. A sink that moves the files that its
commit data name would move any file that its driver can: it checks every name before the first move.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from arroyo_core.errors import UnsafePathError

MAX_PATH_LENGTH = 1024


def check_relative(path: str, *, max_length: int = MAX_PATH_LENGTH) -> str:
    """Return `path`, or raise `UnsafePathError` if it is not a plain relative path that stays where it is put."""
    parts = path.split("/")
    is_plain = all(part not in ("", ".", "..") for part in parts)
    if not is_plain or "\\" in path or "\0" in path or len(path) > max_length or ":" in parts[0]:
        raise UnsafePathError(f"path {path[:200]!r} is not a plain relative path (no '..', no '\\', no absolute path)")
    return path


def check_local_file(root: str, name: str) -> None:
    """Raise `UnsafePathError` if a local file is not a regular file below `root`, links followed; it may be gone.

    `root` itself may be a link. A plain relative `name` can leave it only by links: whoever can make these below `root`
    needs nobody's commit data to get at what is there, but may have no rights outside.
    """
    check_local_folder(root, name)
    path = Path(root, name)
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    if not stat.S_ISREG(mode):
        raise UnsafePathError(f"{str(path)!r} is not a regular file: a link or a folder is not moved")


def check_local_folder(root: str, name: str) -> None:
    """Raise `UnsafePathError` if the folder of the local file `name` is not below `root`, links followed."""
    top, folder = (os.path.realpath(path) for path in (root, Path(root, name).parent))
    if folder != top and not folder.startswith(top.rstrip("/") + "/"):
        raise UnsafePathError(f"{name!r} leaves {root!r} by a link: its folder is {folder!r}")
