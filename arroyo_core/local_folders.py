"""Folders of this user on this host, for what can be made again: where they are, and who can get at them.

They are below the user's own folder for caches: in one for temporary files anybody may take a name first. Users that
run executors often have no home; theirs are in the folder for temporary files all the same, under names with their ids.
"""

from __future__ import annotations

import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from arroyo_core.errors import SetupError

#: Bits of a mode with which others could put something into a folder.
_WRITABLE = 0o022
#: What Spark allows, on every system: 104 for the path of a socket, of which it appends `/.{uuid}.sock` and an end.
_MAX_FOLDER_LENGTH = 104 - 43


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalFolder:
    """A folder whose place a variable of the environment chooses; `off` there means none."""

    what: str
    variable: str
    #: Of the folder where none is chosen; in the folder for temporary files the user's id is appended.
    name: str
    #: The bits of its mode that others must not have.
    closed: int = 0o077

    @property
    def is_chosen(self) -> bool:
        return bool(os.environ.get(self.variable))

    def path(self) -> Path | None:
        """Where it is, or will be; None where it is off.

        A link to a folder may be chosen, and is followed here, once: whoever made it could point it elsewhere later.
        """
        chosen = os.environ.get(self.variable, "")
        if chosen == "off":
            return None
        if chosen:
            return Path(chosen).resolve()
        own = own_cache_folder()
        return own / self.name if own is not None else Path(tempfile.gettempdir()) / f"{self.name}-{os.getuid()}"

    def make(self, path: Path) -> None:
        """Make the folder, if it is not there. Raises `SetupError` for one that others can get at, and `OSError`."""
        make_private_folder(path)
        if not self.is_private(path):
            raise SetupError(
                f"the {self.what} {path} must be a folder of this user, closed to others (mode 700), and not a link; "
                f"set {self.variable} to another folder, or to 'off'"
            )

    def is_private(self, path: Path) -> bool:
        """Whether what is there is a folder of this user, no link, and closed to others."""
        return _is_own_folder(path.lstat(), self.closed)


def own_cache_folder() -> Path | None:
    """`$XDG_CACHE_HOME`, else `~/.cache`; None for a user without a home that only that user can write to."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    if Path(given).is_absolute():
        return Path(given)
    try:
        home = Path.home()
        is_own = _is_own_folder(home.stat(), _WRITABLE)
    except (OSError, RuntimeError):
        return None
    return home / ".cache" if is_own and os.access(home, os.W_OK) else None


def make_private_folder(path: Path) -> None:
    """Make a folder, and those above it that are missing, for this user alone; one that is there stays as it is."""
    for folder in reversed((path, *path.parents)):
        if not folder.exists():
            folder.mkdir(mode=0o700, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)


def make_socket_folder() -> Path:
    """A folder for sockets that only this user can open; its owner removes it."""
    folder = Path(tempfile.mkdtemp(prefix="arroyo-sockets-"))
    if len(os.fsencode(folder)) <= _MAX_FOLDER_LENGTH:
        return folder
    # Those of folders for temporary files may be longer.
    folder.rmdir()
    return Path(tempfile.mkdtemp(prefix="arroyo-sockets-", dir="/tmp"))


def group_bits(root: Path) -> int:
    """What the group of a folder may do there, where the set-group-ID bit says that it is the group's; else nothing."""
    mode = root.stat().st_mode
    return mode & 0o070 if mode & stat.S_ISGID else 0


def make_closed_folder(path: Path, root: Path) -> bool:
    """Make a folder, whose parent is there, for this user or for the group that has `root`; whether it was missing."""
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        return False
    if bits := group_bits(root):
        path.chmod(0o2700 | bits)
    return True


def private_opener(path: str, flags: int) -> int:
    """For `open`: a file that is created is for this user alone, whatever the umask says."""
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def _is_own_folder(found: os.stat_result, closed: int) -> bool:
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & closed


STATE_CACHE = LocalFolder(what="state cache", variable="ARROYO_STATE_CACHE", name="arroyo-state-cache")
UDF_CACHE = LocalFolder(what="UDF cache", variable="ARROYO_UDF_CACHE", name="arroyo-udf-cache")
#: Classes of Spark, which are no secret.
CLASS_ARCHIVE = LocalFolder(
    what="class archive", variable="ARROYO_CLASS_ARCHIVE", name="arroyo-class-archive", closed=_WRITABLE
)
