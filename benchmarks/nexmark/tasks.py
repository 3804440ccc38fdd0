"""What a measured process is given, and what it says of itself. Engines read this in environments of their own.

Only the standard library is imported here.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self

COMPRESSION = "snappy"
#: Subtasks, cores and threads of the engines that have several.
PARALLELISM = 2
#: How far a watermark is behind the latest row.
MAX_LATENESS_MS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One run of one engine, as its process gets it."""

    #: A query or another case by its name.
    case: str
    #: The folder with a folder for each table, and those for the answer and for everything else.
    data: str
    answer: str
    scratch: str
    format: str = "parquet"
    cores: int = PARALLELISM

    def files(self, table: str) -> list[str]:
        return [str(path) for path in sorted((Path(self.data) / table).iterdir())]

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> Self:
        return cls(**json.loads(path.read_text()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """What an engine's process says of itself.

    `job_s` is from the call that starts the job, in a session that is up, to the answer's last file.
    `epochs` is the number of epochs, micro-batches or checkpoints.
    """

    job_s: float
    epochs: int
    #: How the answer is written; `answers.py` knows how each is read.
    answer: str = "parquet"
    #: Whether later rows of a key replace earlier ones.
    is_upsert: bool = False
    #: Of the windows only those are written that the last watermark has passed.
    is_closed_only: bool = False
    versions: dict[str, str] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> Self:
        return cls(**json.loads(path.read_text()))
