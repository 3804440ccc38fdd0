"""The snapshots of a branch: where a source begins, and which ones follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arroyo_core.errors import ConfigError, DataError

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot


@dataclass(frozen=True, slots=True)
class Begin:
    """Where a source begins."""

    #: None: before the first snapshot.
    snapshot: int | None
    #: All rows of the snapshot are read; else only what comes after it.
    is_full: bool
    sequence: int = 0


@dataclass(frozen=True, slots=True)
class Place:
    """A snapshot, and its sequence number: 0 in tables of version 1, which have none."""

    snapshot: int | None
    sequence: int


class LostHistoryError(DataError):
    """Snapshots that a source has not read are gone."""


def head_of(metadata: TableMetadata, branch: str) -> Snapshot | None:
    """The newest snapshot of a branch or tag; None where the table has none. Raises `ConfigError`."""
    if branch not in metadata.refs and (branch != "main" or metadata.current_snapshot_id is not None):
        raise ConfigError(
            f"the table has no branch {branch!r}", field="branch", value=branch, allowed=sorted(metadata.refs)
        )
    return metadata.snapshot_by_name(branch)


def find_begin(metadata: TableMetadata, branch: str, snapshot: int | None, time_us: int | None) -> Begin:
    """Where to begin: with the head, with a snapshot, or with those of a time and later. Raises `ConfigError`."""
    head = head_of(metadata, branch)
    if snapshot is not None:
        found = metadata.snapshot_by_id(snapshot)
        if found is None:
            raise ConfigError(
                f"the table has no snapshot {snapshot}: it never had it, or it has expired", field="start.snapshot"
            )
        if _back(metadata, head, _place(found)) is None:
            raise ConfigError(f"snapshot {snapshot} is not in branch {branch!r}", field="start.snapshot")
        return Begin(snapshot, is_full=True, sequence=_place(found).sequence)
    if time_us is None:
        return Begin(None, is_full=True) if head is None else Begin(head.snapshot_id, True, _place(head).sequence)
    older = head
    while older is not None and older.timestamp_ms * 1000 >= time_us:
        if is_first(older):
            return Begin(None, is_full=False)
        parent = older.parent_snapshot_id
        found = metadata.snapshot_by_id(parent) if parent is not None else None
        if found is None:
            raise ConfigError(
                f"snapshots of before {older.snapshot_id} have expired, so what came since that time is not known: the "
                f"first one that is left is of {older.timestamp_ms} ms since 1970",
                field="start.timestamp",
            )
        older = found
    return Begin(None, False) if older is None else Begin(older.snapshot_id, False, _place(older).sequence)


def is_first(snapshot: Snapshot) -> bool:
    """Whether there was none before it, or none with rows.

    Where snapshots expire, some catalogs take away the parent of those that are left: these only look like the first.
    """
    if snapshot.parent_snapshot_id is not None:
        return False
    if snapshot.sequence_number == 1:
        return True
    summary = snapshot.summary
    total, added = (summary.get(name) if summary is not None else None for name in _FILE_COUNTS)
    return total is not None and total == (added or "0")


_FILE_COUNTS = ("total-data-files", "added-data-files")


def following(metadata: TableMetadata, head: Snapshot | None, last: Place) -> Sequence[Snapshot]:
    """The snapshots of a branch after `last`, oldest first. Raises `LostHistoryError`."""
    if head is None and last.snapshot is None:
        return ()
    lineage = _back(metadata, head, last)
    if lineage is not None:
        return lineage
    if last.snapshot is None or metadata.snapshot_by_id(last.snapshot) is None:
        raise LostHistoryError(
            f"the source has read up to snapshot {last.snapshot}, and what came after it is not known any more: it "
            "and others have expired. Keep snapshots for longer than the job may be stopped; to go on, give the node "
            "another id and choose where it starts"
        )
    raise LostHistoryError(
        f"the source has read up to snapshot {last.snapshot}, which is not in the history of the branch: it was rolled "
        "back, set to another snapshot, or snapshots in between have expired. To go on, give the node another id and "
        "choose where it starts"
    )


def _back(metadata: TableMetadata, head: Snapshot | None, last: Place) -> list[Snapshot] | None:
    """The snapshots after `last` up to `head`, oldest first; None where the history does not lead there."""
    by_id = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    found: list[Snapshot] = []
    current = head
    while current is not None:
        if current.snapshot_id == last.snapshot:
            return found[::-1]
        found.append(current)
        parent = current.parent_snapshot_id
        if last.snapshot is None:
            if is_first(current):
                return found[::-1]
        elif parent == last.snapshot or (
            # The parent is taken away with a snapshot that expires. Every commit to the table has the next number.
            parent is None and last.sequence > 0 and current.sequence_number == last.sequence + 1
        ):
            return found[::-1]
        current = by_id.get(parent) if parent is not None else None
    return None


def _place(snapshot: Snapshot) -> Place:
    return Place(snapshot.snapshot_id, snapshot.sequence_number or 0)
