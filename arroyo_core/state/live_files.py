"""Pure decisions over file references: what a subtask carries forward, and how parts become a whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from arroyo_core.ids import KeyRange
from arroyo_core.proto.state_pb2 import StateFile


def file_order(file: StateFile) -> tuple[int, int, int, int, str]:
    """Sorts files oldest first; of those of one write, which share epoch and subtask, by key hash.

    Rows of one hash may be in several of these, one after the other.
    """
    return (file.epoch, file.subtask_index, file.min_key_hash, file.part, file.path)


def live_range(file: StateFile) -> tuple[int, int]:
    """The key hashes that are both live and present in the file; empty when start > end."""
    return max(file.live_key_start, file.min_key_hash), min(file.live_key_end, file.max_key_hash)


def overlaps_range(file: StateFile, key_range: KeyRange) -> bool:
    start, end = live_range(file)
    return start <= end and key_range.overlaps(start, end)


def narrow(file: StateFile, key_range: KeyRange) -> StateFile:
    """The same file with only the hashes of `key_range` live."""
    narrowed = StateFile()
    narrowed.CopyFrom(file)
    narrowed.live_key_start = max(file.live_key_start, key_range.start)
    narrowed.live_key_end = min(file.live_key_end, key_range.end)
    return narrowed


def carry_forward(
    files: Iterable[StateFile], *, key_range: KeyRange, cutoff_us: int | None = None, shadows: bool = False
) -> list[StateFile]:
    """The references that a subtask's next checkpoint keeps, oldest first, cut to its range and retention.

    `shadows` says that a row hides older rows of its key even when it is itself past retention.
    A file of nothing but rows past retention goes; not so while its deletes, or its rows that
    shadow, still hide rows of an older file that stays.
    """
    kept: list[StateFile] = []
    for file in sorted(files, key=file_order):
        if not overlaps_range(file, key_range):
            continue
        carried = narrow(file, key_range)
        if cutoff_us is not None and (not carried.HasField("live_from_us") or carried.live_from_us < cutoff_us):
            carried.live_from_us = cutoff_us
        hides = shadows or carried.delete_rows > 0
        if _is_expired(carried) and not (hides and any(_share_keys(carried, older) for older in kept)):
            continue
        kept.append(carried)
    return kept


def merge_references(files: Iterable[StateFile]) -> list[StateFile]:
    """The references of all subtasks as one list, oldest first; adjoining parts of one file become one."""
    merged: list[StateFile] = []
    ordered = sorted(files, key=lambda file: (*file_order(file), _live_from(file), file.live_key_start))
    for _, parts in groupby(ordered, key=lambda file: (*file_order(file), _live_from(file))):
        merged.extend(_join_adjoining(list(parts)))
    return merged


def _join_adjoining(parts: Sequence[StateFile]) -> list[StateFile]:
    joined: list[StateFile] = []
    for part in parts:
        if joined and part.live_key_start <= joined[-1].live_key_end + 1:
            joined[-1].live_key_end = max(joined[-1].live_key_end, part.live_key_end)
        else:
            copy = StateFile()
            copy.CopyFrom(part)
            joined.append(copy)
    return joined


def _live_from(file: StateFile) -> tuple[bool, int]:
    return (file.HasField("live_from_us"), file.live_from_us)


def _is_expired(file: StateFile) -> bool:
    if not file.HasField("live_from_us"):
        return False
    return not file.HasField("max_timestamp_us") or file.max_timestamp_us < file.live_from_us


def _share_keys(file: StateFile, other: StateFile) -> bool:
    start, end = live_range(file)
    other_start, other_end = live_range(other)
    return start <= other_end and other_start <= end
