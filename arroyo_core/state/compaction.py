"""Levelled compaction: which files to merge is a pure choice, merging them another matter.

Files of one epoch and writer, or split off one merge, form a run. Runs are ordered by age, and only
neighbours are merged, so the result stands where they stood. A subtask merges only what is live in
its own key range; the checkpoint then refers to the new files instead. Nothing is changed in
place: until that checkpoint is published the new files are orphans, and afterwards the old ones
stay for as long as a kept checkpoint needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby, pairwise
from typing import Any

import pyarrow as pa

from arroyo_core.ids import KeyRange
from arroyo_core.proto.state_pb2 import StateFile
from arroyo_core.state.chunks import combine, cut_rows
from arroyo_core.state.files import MAX_FILE_BYTES, key_hashes, key_range_parts
from arroyo_core.state.live_files import carry_forward, file_order, live_range, narrow, overlaps_range
from arroyo_core.state.messages import Compacted
from arroyo_core.state.table import Table

#: How much larger than its file a table is in memory, where nobody has recorded it.
_GUESSED_COMPRESSION = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPolicy:
    """When runs are merged and how large files may get."""

    #: This many neighbouring runs of one level are merged into one of the next.
    fan_in: int = 4
    #: Runs up to this size are of level 0; each level is `fan_in` times larger.
    level_bytes: int = 256 * 1024
    #: A merged run is split by key range into files of at most about this many rows.
    max_file_rows: int = 2_000_000
    #: And of this many bytes in memory.
    max_file_bytes: int = MAX_FILE_BYTES
    #: Files are merged in slices of about this many bytes in memory.
    max_merge_bytes: int = MAX_FILE_BYTES
    is_enabled: bool = True


#: For tables that live on: epochs are short then, and files are read after a failure only.
LIVING_COMPACTION = CompactionPolicy(fan_in=8)


@dataclass(frozen=True, slots=True)
class _SizedRun:
    files: tuple[StateFile, ...]
    level: int
    version: int


def choose_files(files: Sequence[StateFile], policy: CompactionPolicy) -> list[StateFile]:
    """The files to merge, oldest first, of the lowest level that is full; none if no level is.

    A level is full when `fan_in` of its runs have no larger run between them; smaller ones between
    them go along. However sizes are mixed, fewer than `fan_in` runs for each level remain.
    """
    if not policy.is_enabled:
        return []
    runs = _runs(files, policy)
    for level in sorted({run.level for run in runs}):
        best: list[_SizedRun] = []
        for is_low, window in groupby(runs, key=lambda run: (run.level <= level, run.version)):
            neighbours = list(window)
            if is_low[0] and _is_full(neighbours, level, policy) and len(neighbours) > len(best):
                best = neighbours
        if best:
            return [file for run in best for file in run.files]
    return []


def _is_full(neighbours: Sequence[_SizedRun], level: int, policy: CompactionPolicy) -> bool:
    levels = [run.level for run in neighbours]
    return levels.count(level) >= policy.fan_in or len(levels) >= policy.fan_in * len(set(levels))


def live_bytes(file: StateFile, whole_bytes: int) -> int:
    """About how much is live of a file, all of which has `whole_bytes`: key hashes are spread evenly."""
    start, end = live_range(file)
    if start > end:
        return 0
    span = file.max_key_hash - file.min_key_hash + 1
    return max(1, whole_bytes * (end - start + 1) // span)


def choose_compaction(table: Table[Any], *, epoch: int, policy: CompactionPolicy) -> Callable[[], Compacted] | None:
    """What merges the files that `choose_files` says into new files of `epoch`; None if there is nothing to merge.

    It may be called in another thread, while the table is read and written to: the table itself
    changes only when it takes the result, with `swap_compacted`.
    """
    key_range = table.access.task_info.key_range
    table.carried = carry_forward(table.carried, key_range=key_range, shadows=table.is_shadowing)
    chosen = choose_files(table.carried, policy)
    if not chosen:
        return None
    is_oldest = file_order(chosen[0]) == file_order(table.carried[0])
    return lambda: _compact(table, chosen, epoch=epoch, policy=policy, is_oldest=is_oldest)


def _compact(
    table: Table[Any],
    chosen: Sequence[StateFile],
    *,
    epoch: int,
    policy: CompactionPolicy,
    is_oldest: bool,
) -> Compacted:
    written: list[StateFile] = []
    for rows in merge_slices(table, chosen, is_oldest=is_oldest, max_bytes=policy.max_merge_bytes):
        for part in split_rows(rows, max_rows=policy.max_file_rows, max_bytes=policy.max_file_bytes):
            file = table.access.write(
                combine(part),
                table_name=table.name,
                epoch=epoch,
                state_version=chosen[-1].state_version,
                compaction_generation=max(file.compaction_generation for file in chosen) + 1,
                timestamp_column=table.timestamp_column,
                part=len(written),
            )
            # The merged rows are as old as the newest of them, not as new as this epoch.
            file.epoch, file.subtask_index = chosen[-1].epoch, chosen[-1].subtask_index
            written.append(file)
    return Compacted(list(chosen), written)


def merge_slices(
    table: Table[Any], files: Sequence[StateFile], *, is_oldest: bool, max_bytes: int
) -> Iterator[pa.Table]:
    """As `merge_files`, in slices by key hash of about `max_bytes` in memory, in order; only one is held at a time.

    Rows of one key hash are in one slice, however many there are.
    """
    readers = table.access.for_each(files, table.access.rewriter)
    for key_range in slice_key_ranges(files, table.access.task_info.key_range, max_bytes=max_bytes):
        parts = table.access.for_each(readers, partial(_read_range, key_range))
        yield table.merge_rows(files, parts, is_oldest=is_oldest)


def merge_files(table: Table[Any], files: Sequence[StateFile], *, is_oldest: bool) -> pa.Table:
    """All that is live of neighbouring files, oldest first, as one sorted table.

    With `is_oldest` nothing older exists: deletes have done their work and are left out.
    """
    key_range = table.access.task_info.key_range
    parts = table.access.for_each(files, lambda file: table.access.read(file, key_range))
    return table.merge_rows(files, parts, is_oldest=is_oldest)


def _read_range(key_range: KeyRange, read: Callable[[KeyRange], pa.Table]) -> pa.Table:
    return read(key_range)


def slice_key_ranges(files: Sequence[StateFile], key_range: KeyRange, *, max_bytes: int) -> list[KeyRange]:
    """Ranges of key hashes that cover what is live of the files, with about as many bytes of them in each: pure."""
    own = [narrow(file, key_range) for file in files]
    held = [live_range(file) for file in own if overlaps_range(file, key_range)]
    if not held:
        return []
    first, last = min(start for start, _ in held), max(end for _, end in held)
    total = sum(live_bytes(file, memory_bytes(file)) for file in own)
    count = max(1, min(-(-total // max_bytes), last - first + 1))
    cuts = [first + (last - first + 1) * number // count for number in range(count + 1)]
    return [KeyRange(start, end - 1) for start, end in pairwise(cuts)]


def memory_bytes(file: StateFile) -> int:
    """What the rows of a file take in memory; a guess for files that do not say so."""
    return file.memory_bytes or file.size_bytes * _GUESSED_COMPRESSION


def split_rows(rows: pa.Table, *, max_rows: int, max_bytes: int) -> Iterator[pa.Table]:
    """A sorted table in parts of about `max_rows` and at most `max_bytes`.

    All rows of one hash are in one part, unless it has too many bytes: then they are in parts that follow each other.
    """
    for part in split_by_key_range(rows, max_rows):
        yield from cut_rows(part, max_bytes)


def split_by_key_range(rows: pa.Table, max_rows: int) -> list[pa.Table]:
    """A sorted table in parts of about `max_rows`; all rows of one hash are in one part."""
    return [rows.slice(part.start, part.stop - part.start) for part in key_range_parts(key_hashes(rows), max_rows)]


def _runs(files: Sequence[StateFile], policy: CompactionPolicy) -> list[_SizedRun]:
    ordered = sorted(files, key=lambda file: (file.epoch, file.subtask_index, file.compaction_generation))
    runs = []
    for _, members in groupby(ordered, key=lambda f: (f.epoch, f.subtask_index, f.compaction_generation)):
        run = tuple(sorted(members, key=file_order))
        level, limit = 0, policy.level_bytes
        size = sum(live_bytes(file, file.size_bytes) for file in run)
        while size > limit:
            level, limit = level + 1, limit * policy.fan_in
        runs.append(_SizedRun(run, level, run[0].state_version))
    return runs
