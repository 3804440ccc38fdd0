"""Where the server keeps what is not in its database: texts, logs and journals of runs, and checkpoints.

    {data}/console.db                       the database, where no other is given
    {data}/token                            what a request must have that does not come from this machine
    {data}/jobs/{job}/{run}/                pipeline.yaml or .sql, log.txt, output.txt, exit.json and the journal
    {data}/checkpoints/{pipeline}/          of pipelines that do not say where theirs go

All of it is for this user alone.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from arroyo_console.values import Language
from arroyo_core.errors import SetupError
from arroyo_core.local_folders import make_private_folder

VARIABLE = "ARROYO_CONSOLE_DATA"
LOG, OUTPUT, EXIT, PROCESS = "log.txt", "output.txt", "exit.json", "process.json"
_ID = re.compile(r"[a-z]+_[0-9a-f]{20}")


@dataclass(frozen=True, slots=True)
class Folders:
    """The folders of one server."""

    data: Path

    def make(self) -> None:
        """Make the data folder; raises `SetupError` for one that others can get at."""
        try:
            make_private_folder(self.data)
            mode, owner = self.data.stat().st_mode, self.data.stat().st_uid
        except OSError as error:
            raise SetupError(f"the data folder {self.data} cannot be made: {error.strerror}") from error
        if mode & 0o077 or owner != os.getuid():
            raise SetupError(
                f"the data folder {self.data} must be of this user and closed to others (mode 700): it has the texts "
                f"and logs of pipelines; --data or {VARIABLE} chooses another one"
            )

    def job(self, job_id: str) -> Path:
        return self.data / "jobs" / checked_id(job_id)

    def run(self, job_id: str, number: int) -> Path:
        return self.job(job_id) / str(int(number))

    def text(self, job_id: str, number: int, language: Language) -> Path:
        return self.run(job_id, number) / f"pipeline.{language}"

    def checkpoints(self, pipeline_id: str) -> Path:
        return self.data / "checkpoints" / checked_id(pipeline_id)

    @property
    def scratch(self) -> Path:
        return self.data / "scratch"


def default_data_folder() -> Path:
    """`$ARROYO_CONSOLE_DATA`, else `arroyo-console` in the folder for data of this user."""
    chosen = os.environ.get(VARIABLE, "")
    if chosen:
        return Path(chosen).expanduser().absolute()
    given = Path(os.environ.get("XDG_DATA_HOME", ""))
    if given.is_absolute():
        return given / "arroyo-console"
    try:
        return Path.home() / ".local" / "share" / "arroyo-console"
    except RuntimeError as error:
        raise SetupError(f"this user has no home folder: --data or {VARIABLE} says where data goes") from error


def checked_id(text: str) -> str:
    """An id as a part of a path: raises `ValueError` for what the store has not made."""
    if not _ID.fullmatch(text):
        raise ValueError(f"{text!r} is not an id")
    return text
