"""What is measured: one query, with and without a shuffle, on the same files for every engine."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

#: The columns that the query needs; the files have more.
COLUMNS = ("auction", "bidder", "price", "channel", "date_time")
#: A third of the bids: prices are uniform in their logarithm.
MIN_PRICE = 1_000_000
EUROS_PER_DOLLAR = 0.908
COMPRESSION = "snappy"
#: Subtasks, and cores, of the engines that have several.
PARALLELISM = 2

CASES = ("filter", "shuffle")
ENGINES = ("arroyo", "pyarrow", "structured_streaming")


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One run of one engine, as its process gets it."""

    case: str
    #: The folder of the input's Parquet files, and those for the answer and for everything else.
    data: str
    answer: str
    scratch: str

    @property
    def is_shuffled(self) -> bool:
        return self.case == "shuffle"

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> Task:
        return cls(**json.loads(path.read_text()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """What an engine's process says of itself.

    `job_s` is from the call that starts the job to the answer's last file, in a session that is
    up. `epochs` is the number of epochs or micro-batches.
    """

    job_s: float
    epochs: int

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> Timing:
        return cls(**json.loads(path.read_text()))
