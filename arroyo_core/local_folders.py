"""Folders of this user on this host, for what can be made again: where they are, and who can get at them.

They are in the folder for temporary files, not in the user's home: they hold gigabytes that go with the host, and users
that run executors often have no home.
"""

from __future__ import annotations

import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from arroyo_core.errors import SetupError


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalFolder:
    """A folder whose place a variable of the environment chooses; `off` there means none."""

    what: str
    variable: str
    #: Of the folder where none is chosen; the user's id is appended.
    name: str
    #: The bits of its mode that others must not have.
    closed: int = 0o077
    #: Else a link is refused: whoever made it could point it elsewhere later.
    follows_links: bool = False

    @property
    def is_chosen(self) -> bool:
        return bool(os.environ.get(self.variable))

    def path(self) -> Path | None:
        """Where it is, or will be; None where it is off."""
        chosen = os.environ.get(self.variable, "")
        if chosen == "off":
            return None
        return Path(chosen) if chosen else Path(tempfile.gettempdir()) / f"{self.name}-{os.getuid()}"

    def make(self, path: Path) -> None:
        """Make the folder, if it is not there. Raises `SetupError` for one that others can get at, and `OSError`."""
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self.is_private(path):
            raise SetupError(
                f"the {self.what} {path} must be a folder of this user, closed to others (mode 700); "
                f"set {self.variable} to another folder, or to 'off'"
            )

    def is_private(self, path: Path) -> bool:
        """Whether what is there is a folder of this user, and closed to others."""
        found = path.stat() if self.follows_links else path.lstat()
        return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & self.closed


STATE_CACHE = LocalFolder(
    what="state cache", variable="ARROYO_STATE_CACHE", name="arroyo-state-cache", follows_links=True
)
UDF_CACHE = LocalFolder(what="UDF cache", variable="ARROYO_UDF_CACHE", name="arroyo-udf-cache")
#: Classes of Spark, which are no secret.
CLASS_ARCHIVE = LocalFolder(
    what="class archive", variable="ARROYO_CLASS_ARCHIVE", name="arroyo-class-archive", closed=0o022
)
