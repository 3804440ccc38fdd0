"""The files of a table's snapshots: all, those that a snapshot has added, and what it has changed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING

from arroyo_core.errors import DataError
from arroyo_iceberg.history import LostHistoryError, is_first
from arroyo_iceberg.reading import Unit

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

#: Lists of files of snapshots that are kept, since all buckets need them.
KEPT_LISTS = 4


class Part(Enum):
    """What is read of a snapshot."""

    #: All rows that the table has in it.
    ALL = "all"
    #: The files that it has added.
    ADDED = "added"
    #: The rows that it has taken away, then those that it has added.
    CHANGED = "changed"


class Snapshots:
    """The snapshots of a table, as it was when it was loaded."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._lists: OrderedDict[tuple[int, Part], Sequence[Unit]] = OrderedDict()

    def operation(self, snapshot_id: int | None) -> str:
        summary = self._get(snapshot_id).summary
        return summary.operation.value if summary is not None else "append"

    def units(self, snapshot_id: int, part: Part) -> Sequence[Unit]:
        """The files in their order, which never changes: a snapshot does not. What is taken away comes first."""
        key = (snapshot_id, part)
        if key not in self._lists:
            makes = {Part.ALL: self._all, Part.ADDED: self._added, Part.CHANGED: self._changed}
            units = makes[part](self._get(snapshot_id))
            self._lists[key] = sorted(units, key=lambda unit: (not unit.is_taken_away, unit.path))
            while len(self._lists) > KEPT_LISTS:
                self._lists.popitem(last=False)
        return self._lists[key]

    def _all(self, snapshot: Snapshot) -> Iterator[Unit]:
        return iter(self._plan(snapshot))

    def _added(self, snapshot: Snapshot) -> Iterator[Unit]:
        from pyiceberg.manifest import DataFileContent, ManifestContent, ManifestEntryStatus

        for manifest in snapshot.manifests(self.table.io):
            if manifest.content != ManifestContent.DATA or manifest.added_snapshot_id != snapshot.snapshot_id:
                continue
            for entry in manifest.fetch_manifest_entry(self.table.io, discard_deleted=True):
                is_new = entry.status == ManifestEntryStatus.ADDED and entry.snapshot_id == snapshot.snapshot_id
                if is_new and entry.data_file.content == DataFileContent.DATA:
                    yield Unit(entry.data_file)

    def _changed(self, snapshot: Snapshot) -> Iterator[Unit]:
        """What tells a snapshot from the one before it: files, and rows that delete files have taken from files."""
        before, after = self._before(snapshot), self._by_path(snapshot)
        for path in before.keys() - after.keys():
            yield before[path].taken_away()
        for path in after.keys() - before.keys():
            yield after[path]
        for path in before.keys() & after.keys():
            old, new = before[path].deletes, after[path].deletes
            if set(new) - set(old):
                yield Unit(before[path].file, old, only=new, is_taken_away=True)
            if set(old) - set(new):
                # Deletes that were joined, or taken back.
                yield Unit(before[path].file, new, only=old)

    def _before(self, snapshot: Snapshot) -> Mapping[str, Unit]:
        if is_first(snapshot):
            return {}
        parent = snapshot.parent_snapshot_id
        found = self.table.metadata.snapshot_by_id(parent) if parent is not None else None
        if found is None:
            raise LostHistoryError(
                f"the snapshot before {snapshot.snapshot_id} has expired, so what has changed since then is not known "
                "any more. Keep snapshots for longer than the job may be stopped; to go on, give the node another id "
                "and choose where it starts"
            )
        return self._by_path(found)

    def _by_path(self, snapshot: Snapshot) -> Mapping[str, Unit]:
        """Raises `DataError` for a file that is listed twice: which of the two has changed could not be told."""
        found: dict[str, Unit] = {}
        for unit in self._plan(snapshot):
            if unit.path in found:
                raise DataError(
                    f"snapshot {snapshot.snapshot_id} of table {'.'.join(self.table.name())} has the file {unit.path} "
                    "twice, so what has changed in it is not known: have what writes the table rewrite its files"
                )
            found[unit.path] = unit
        return found

    def _plan(self, snapshot: Snapshot) -> list[Unit]:
        """All files of a snapshot; one that is listed twice comes twice."""
        try:
            tasks = list(self.table.scan(snapshot_id=snapshot.snapshot_id).plan_files())
        except (ValueError, NotImplementedError) as error:
            if "equality delete" not in str(error):
                raise
            raise DataError(
                f"snapshot {snapshot.snapshot_id} of table {'.'.join(self.table.name())} has equality deletes, which "
                "pyiceberg does not read: have what writes the table rewrite its files (Spark: rewrite_data_files), or "
                "write with copy-on-write or positional deletes"
            ) from error
        return [Unit(task.file, tuple(task.delete_files)) for task in tasks]

    def _get(self, snapshot_id: int | None) -> Snapshot:
        found = self.table.metadata.snapshot_by_id(snapshot_id) if snapshot_id is not None else None
        if found is None:
            raise LostHistoryError(
                f"snapshot {snapshot_id}, which the source is reading, has expired: its rows are not known any more. "
                "Keep snapshots for longer than the job takes; to go on, give the node another id and choose where it "
                "starts"
            )
        return found
