"""How the files of a source are cut into splits and dealt to subtasks: pure decisions.

The cut is made once, in the first epoch, and kept in the state; every later epoch, at whatever
parallelism, deals the same splits. So the number of a split is all that progress needs as a key.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from arroyo_filesystem.listing import File

#: Enough splits for each subtask that one slow split does not decide, but none smaller than the least.
SPLITS_PER_SUBTASK = 4
LEAST_SPLIT_BYTES = 4 * 2**20
#: How many files a watch admits that are not read yet; it finds the others again when these are.
MAX_UNREAD = 10_000


class Split(msgspec.Struct, frozen=True, array_like=True):
    """A part of a file, as its format counts: bytes of lines, row groups of Parquet; end excluded."""

    file: int
    start: int
    stop: int

    @property
    def part(self) -> tuple[int, int]:
        return self.start, self.stop


class SplitPlan(msgspec.Struct, frozen=True):
    """Everything a source has to read, in order."""

    url: str
    format: str
    files: tuple[File, ...]
    splits: tuple[Split, ...]
    #: The checkpoint has recorded path and format, too: whoever starts the job has compared them.
    is_recorded: bool = False
    #: The fingerprint of the plan of the first epoch, where files were added since.
    first: str = ""


def choose_split_bytes(files: Sequence[File], *, greatest: int, parallelism: int) -> int:
    """A size of splits that keeps all subtasks busy on small inputs, and splits few on large ones."""
    total = sum(file.size for file in files)
    even = -(-total // (SPLITS_PER_SUBTASK * parallelism))
    return min(max(even, LEAST_SPLIT_BYTES), greatest)


def deal(split_count: int, *, task_index: int, parallelism: int) -> range:
    """The numbers of the splits that a subtask reads."""
    return range(task_index, split_count, parallelism)


def merge_ranges(ranges: Iterable[tuple[int, int]], finished: Iterable[int]) -> list[tuple[int, int]]:
    """Sorted disjoint half-open ranges that cover the given ones and the single numbers."""
    merged: list[tuple[int, int]] = []
    for start, stop in sorted([*ranges, *((number, number + 1) for number in finished)]):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    return merged
