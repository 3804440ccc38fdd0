"""What the process of a peer is given: a steady stream; only the standard library is imported here."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

#: How often a peer with an interval for its commits is told to commit.
COMMIT_MS = 250
#: Between two lots of rows.
STEP_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTask:
    """So many rows at a rate."""

    rows: int
    rate: int
    #: A folder, and one for everything else.
    answer: str
    scratch: str
    #: Whether rows are printed; else they go to files, with exactly-once commits.
    is_shown: bool
    #: Only what Real-Time Mode says to the stream, as JSON into the file `answer`.
    is_realtime: bool = False
    cores: int = 2

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> Self:
        return cls(**json.loads(path.read_text()))
