"""What the versions of a table have done, read from the entries of its log one by one.

The library reads a table as it is in a version, and here is what one version has changed. Others write the log: entries
have a limit, and names of files are held to the folder of the table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.api.confined import check_relative
from arroyo_core.errors import ConfigError, DataError, UnsafePathError
from arroyo_delta.limits import LOG_ENTRY_BYTES, TABLE_FILES
from arroyo_delta.location import Files, TableLocation
from arroyo_delta.log_depth import LOG_FOLDER
from arroyo_delta.partitions import value_text

if TYPE_CHECKING:
    from deltalake import DeltaTable

MAX_NAME_LENGTH = 4096
_LAST_CHECKPOINT_BYTES = 2**20
#: What a reader has to know, or not where it is not used; the use is looked for.
_KNOWN_FEATURES = frozenset({"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "deletionVectors", "columnMapping"})


class Part(StrEnum):
    """Which rows of a file a unit is, and what they mean."""

    #: All rows; they are added.
    ADDED = "added"
    #: All rows; they are taken away.
    REMOVED = "removed"
    #: Of a file of changes, those that say what is taken away.
    BEFORE = "before"
    #: Of a file of changes, those that say what is added.
    AFTER = "after"

    @property
    def is_retract(self) -> bool:
        return self in (Part.REMOVED, Part.BEFORE)


@dataclass(frozen=True, slots=True)
class Unit:
    """A file to read for a version; the path is relative to the table's folder."""

    path: str
    partition: Mapping[str, str | None]
    part: Part = Part.ADDED


@dataclass(frozen=True, slots=True)
class Version:
    """What a version has for a source, in the order in which it is read."""

    number: int
    units: tuple[Unit, ...]
    #: What it is called in the log, such as MERGE.
    operation: str = ""
    #: Whether rows are taken away or changed.
    removes: bool = False


class _File(msgspec.Struct, frozen=True, rename="camel"):
    path: str
    partition_values: dict[str, str | None] | None = None
    data_change: bool = True
    deletion_vector: dict[str, Any] | None = None


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    id: str
    schema_string: str
    configuration: dict[str, str] | None = None


class _Protocol(msgspec.Struct, frozen=True, rename="camel"):
    min_reader_version: int
    reader_features: list[str] | None = None


class _CommitInfo(msgspec.Struct, frozen=True):
    operation: str = ""


class _Action(msgspec.Struct, frozen=True, rename="camel"):
    add: _File | None = None
    remove: _File | None = None
    cdc: _File | None = None
    meta_data: _Metadata | None = None
    protocol: _Protocol | None = None
    commit_info: _CommitInfo | None = None


_DECODER = msgspec.json.Decoder(_Action)


class TableLog:
    """The versions of one table, for one subtask."""

    def __init__(self, location: TableLocation, *, has_changes: bool, table_id: str) -> None:
        self._location = location
        self._files: Files = location.files()
        self._has_changes = has_changes
        self._table_id = table_id

    def snapshot(self, number: int) -> Version:
        """All rows that the table has in a version."""
        table = self._location.open(number)
        if table is None:
            raise self._gone(number)
        check_readable(table)
        rows = pa.table(table.get_add_actions()).to_pylist()
        problem = TABLE_FILES.problem(len(rows))
        if problem is not None:
            raise DataError(f"version {number} of the table {self._location.place} has {len(rows)} files: {problem}")
        units = [Unit(self._checked(row["path"]), _partition_texts(row.get("partition"))) for row in rows]
        return Version(number, tuple(sorted(units, key=lambda unit: unit.path)))

    def find(self, number: int) -> Version | None:
        """What a version has changed; None where it is not there yet. Raises `DataError` where it is gone."""
        limit = LOG_ENTRY_BYTES.value
        data = self._files.read(f"{LOG_FOLDER}/{number:020}.json", limit)
        if data is None:
            if self._last_checkpoint() >= number:
                raise self._gone(number)
            return None
        if len(data) > limit:
            raise DataError(f"version {number} of the table {self._location.place}: {LOG_ENTRY_BYTES.hint}")
        return self._read(number, data)

    def _read(self, number: int, data: bytes) -> Version:
        added: list[Unit] = []
        removed: list[Unit] = []
        changes: list[_File] = []
        operation = ""
        removes = False
        for action in self._actions(number, data):
            if action.add is not None and action.add.data_change:
                added.append(self._unit(number, action.add, Part.ADDED))
            elif action.remove is not None and action.remove.data_change:
                removes = True
                removed.append(self._unit(number, action.remove, Part.REMOVED))
            elif action.cdc is not None:
                changes.append(action.cdc)
            elif action.meta_data is not None:
                self._check_metadata(number, action.meta_data)
            elif action.protocol is not None:
                check_reader(set(action.protocol.reader_features or ()), {}, f"version {number} of the table")
            elif action.commit_info is not None:
                operation = action.commit_info.operation
        removes = removes or bool(changes)
        if not self._has_changes:
            return Version(number, tuple(added), operation, removes)
        if changes:
            # They say everything. What is taken away comes before what is added in its place.
            units = [self._unit(number, file, part) for part in (Part.BEFORE, Part.AFTER) for file in changes]
        else:
            units = [*removed, *added]
        return Version(number, tuple(units), operation, removes)

    def _actions(self, number: int, data: bytes) -> Iterator[_Action]:
        for line in data.splitlines():
            if not line.strip():
                continue
            try:
                yield _DECODER.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                raise DataError(
                    f"version {number} of the table {self._location.place} has a broken entry in its log: {error}"
                ) from error

    def _unit(self, number: int, file: _File, part: Part) -> Unit:
        if file.deletion_vector is not None:
            raise DataError(
                f"version {number} of the table {self._location.place} has a deletion vector, which delta.source does "
                "not read: switch delta.enableDeletionVectors off, and purge what is there"
            )
        return Unit(self._checked(file.path), file.partition_values or {}, part)

    def _checked(self, path: str) -> str:
        """The name of a file in the table's folder; raises `DataError`."""
        name = unquote(path)
        try:
            return check_relative(name, max_length=MAX_NAME_LENGTH)
        except UnsafePathError as error:
            raise DataError(
                f"the log of the table {self._location.place} names a file outside of it, which delta.source does not "
                f"read (a shallow clone does): {error}"
            ) from None

    def _check_metadata(self, number: int, found: _Metadata) -> None:
        if self._table_id and found.id != self._table_id:
            raise DataError(
                f"version {number} of the table {self._location.place} is of another table than the one that the job "
                "began with: it was made again. Give the node another id, and it reads from the beginning"
            )
        check_reader(set(), found.configuration or {}, f"version {number} of the table")

    def _last_checkpoint(self) -> int:
        """The version of the last checkpoint of the log: entries up to it may be gone."""
        data = self._files.read(f"{LOG_FOLDER}/_last_checkpoint", _LAST_CHECKPOINT_BYTES)
        if data is None:
            return -1
        try:
            version = json.loads(data)["version"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return -1
        return version if isinstance(version, int) else -1

    def _gone(self, number: int) -> DataError:
        return DataError(
            f"version {number} of the table {self._location.place} is gone: its log keeps versions for "
            "delta.logRetentionDuration, 30 days by default, and this job is further behind. Give the node another id, "
            "and it reads from the beginning"
        )


#: What a name that leads out of its folder has; others have it, too.
_SUSPECT = r"^/|:|\.\.|%"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def check_inside(table: DeltaTable, place: str) -> None:
    """Raise `DataError` where the table has a file that is not in its folder, before the library reads its files.

    It would read any file that this process can, of this host too where the table is elsewhere.
    """
    paths = pa.table(table.get_add_actions()).column("path").cast(pa.string())
    suspect = paths.filter(pc.match_substring_regex(paths, _SUSPECT)).to_pylist()
    outside = next((path for path in suspect if _is_outside(path)), None)
    if outside is not None:
        raise DataError(
            f"the log of the table {place} names a file outside of it, which is not read (a shallow clone does): "
            f"{outside[:200]!r}"
        )


def _is_outside(path: str) -> bool:
    # The library decodes a name once: a value of a partition that was escaped twice stays one part of the name.
    name = unquote(path)
    further = "/".join(part if "=" in part else unquote(part) for part in name.split("/"))
    return any(
        form.startswith("/") or ".." in form.split("/") or _SCHEME.match(form) is not None
        for form in (path, name, further)
    )


def check_readable(table: DeltaTable) -> None:
    """Raise `DataError` for a table that cannot be read file by file."""
    features = set(table.protocol().reader_features or ())
    check_reader(features, table.metadata().configuration, "the table")
    if "deletionVectors" in features and pa.table(table.deletion_vectors()).num_rows:
        raise DataError(
            "the table has deletion vectors, which delta.source does not read: switch delta.enableDeletionVectors off, "
            "and purge what is there"
        )


def check_reader(features: set[str], configuration: Mapping[str, Any], what: str) -> None:
    unknown = sorted(features - _KNOWN_FEATURES)
    if unknown:
        raise DataError(f"{what} has the feature {unknown[0]}, which delta.source does not know")
    if (configuration.get("delta.columnMapping.mode") or "none") != "none":
        raise DataError(f"{what} has column mapping, which delta.source does not read")


def first_version_since(table: DeltaTable, time_ms: int, text: str) -> int:
    """The first version of that time or later; the next one where there is none."""
    found = sorted((entry["version"], entry.get("timestamp") or 0) for entry in table.history())
    later = [version for version, made_ms in found if made_ms >= time_ms]
    if later and later[0] == found[0][0] and later[0] > 0:
        raise ConfigError(
            f"the log begins with version {later[0]}, which is later: what was before is gone",
            field="start",
            value=text,
        )
    return later[0] if later else table.version() + 1


def _partition_texts(partition: Mapping[str, object] | None) -> dict[str, str | None]:
    return {name: None if value == "" else value_text(value, name) for name, value in (partition or {}).items()}
