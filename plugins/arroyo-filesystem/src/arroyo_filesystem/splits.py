"""How the files of a source are cut into splits and dealt to subtasks: pure decisions.

The cut is made once, in the first epoch, and kept in the state; every later epoch, at whatever
parallelism, deals the same splits. So the number of a split is all that progress needs as a key.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec

from arroyo_filesystem.formats.format import Format, compression_of
from arroyo_filesystem.listing import File

MEBIBYTE = 2**20
#: Enough splits for each subtask that one slow split does not decide, but none smaller than the least.
SPLITS_PER_SUBTASK = 4
LEAST_SPLIT_BYTES = 4 * MEBIBYTE
#: Text splits are smaller: a text file is larger than the same rows in Parquet.
GREATEST_SPLIT_BYTES = {
    Format.PARQUET: 64 * MEBIBYTE,
    Format.ARROW: 64 * MEBIBYTE,
    Format.JSON: 32 * MEBIBYTE,
    Format.DEBEZIUM_JSON: 32 * MEBIBYTE,
    Format.CSV: 32 * MEBIBYTE,
}
#: As the end of a split: all that the file has.
TO_THE_END = -1


class Split(msgspec.Struct, frozen=True, array_like=True):
    """A part of a file: bytes of a text file, row groups of Parquet, record batches of Arrow; end excluded."""

    file: int
    start: int
    stop: int


class SplitPlan(msgspec.Struct, frozen=True):
    """Everything a source has to read, in order."""

    url: str
    format: str
    files: tuple[File, ...]
    splits: tuple[Split, ...]
    #: The checkpoint has recorded path and format, too: whoever starts the job has compared them.
    is_recorded: bool = False


def choose_split_bytes(files: Sequence[File], *, kind: Format, parallelism: int) -> int:
    """A size of splits that keeps all subtasks busy on small inputs, and splits few on large ones."""
    total = sum(file.size for file in files)
    even = -(-total // (SPLITS_PER_SUBTASK * parallelism))
    return min(max(even, LEAST_SPLIT_BYTES), GREATEST_SPLIT_BYTES[kind])


def needs_parts(file: File, *, kind: Format, split_bytes: int) -> bool:
    """Whether a file must be opened to be cut: it is larger than a split, and is not cut by bytes."""
    return not kind.is_text and file.size > split_bytes


def cut_text(index: int, file: File, *, split_bytes: int, is_splittable: bool) -> list[Split]:
    """Splits of a text file by bytes; which lines belong to a split is the reader's to find."""
    if not is_splittable or compression_of(file.path) or file.size <= split_bytes:
        return [Split(index, 0, TO_THE_END)]
    starts = [*range(0, file.size, split_bytes), file.size]
    return [Split(index, start, stop) for start, stop in pairwise(starts)]


def cut_parts(index: int, part_bytes: Sequence[int], *, split_bytes: int) -> list[Split]:
    """Splits of a file of parts (row groups, record batches): neighbours together, up to a split's size."""
    splits: list[Split] = []
    start, held = 0, 0
    for part, size in enumerate(part_bytes):
        if part > start and held + size > split_bytes:
            splits.append(Split(index, start, part))
            start, held = part, 0
        held += size
    if start < len(part_bytes):
        splits.append(Split(index, start, len(part_bytes)))
    return splits


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
