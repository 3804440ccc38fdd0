"""The entry of the log that a commit makes, by its mode. Each is one version of the table, with the marker in it.

All raise `CommitFailedError` where another version was made since the table was opened.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from arroyo_delta.changes import IS_DELETED, read_changes, staged_columns
from arroyo_delta.location import Files
from arroyo_delta.open_files import partition_values
from arroyo_delta.partitions import Values, value_text
from arroyo_delta.staging import StagedFile

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable
    from deltalake.transaction import AddAction, RemoveAction

_SOURCE, _TARGET = "changes", "rows"


def append(
    table: DeltaTable, files: Sequence[StagedFile], partition_by: tuple[str, ...], properties: CommitProperties
) -> None:
    _commit(table, _added(files, partition_by), partition_by, properties)


def overwrite(
    table: DeltaTable,
    files: Sequence[StagedFile],
    partition_by: tuple[str, ...],
    replaced: Collection[Values],
    properties: CommitProperties,
) -> None:
    """The files are added, and all others in the partitions `replaced` taken away."""
    from deltalake.transaction import RemoveAction

    now_ms = time.time_ns() // 1_000_000
    actions: list[AddAction | RemoveAction] = []
    if replaced:
        for path, size, values in live_files(table, partition_by):
            if values in replaced:
                partition = dict(zip(partition_by, values, strict=True))
                actions.append(RemoveAction(path, True, now_ms, size, partition))
    actions += _added(files, partition_by)
    _commit(table, actions, partition_by, properties)


def merge(
    table: DeltaTable,
    files: Files,
    names: Sequence[str],
    schema: pa.Schema,
    keys: Sequence[str],
    properties: CommitProperties,
) -> None:
    """The changes in the files that are named replace, add and delete rows of the table.

    Where they change nothing there is no entry. A change that is repeated then changes nothing either.
    """
    wanted = staged_columns(schema)
    # Before the library asks for them: it ends the process where reading fails.
    changes = pa.concat_tables([part.select(wanted.names).cast(wanted) for part in read_changes(files, names)])
    # Each in brackets: the library's parser takes what follows for a part of the comparison.
    same = " AND ".join(f"({_column(_TARGET, key)} IS NOT DISTINCT FROM {_column(_SOURCE, key)})" for key in keys)
    values = {_quoted(name): _column(_SOURCE, name) for name in schema.names}
    deleted = _column(_SOURCE, IS_DELETED)
    merger = table.merge(
        changes.to_reader(),
        same,
        source_alias=_SOURCE,
        target_alias=_TARGET,
        # Read whole, the changes tell which files have none of the keys.
        streamed_exec=False,
        commit_properties=properties,
    )
    merger = merger.when_matched_delete(deleted)
    merger = merger.when_matched_update(values)
    merger.when_not_matched_insert(values, predicate=f"NOT {deleted}").execute()


def live_files(table: DeltaTable, partition_by: Sequence[str]) -> Iterator[tuple[str, int, Values]]:
    """Path, size and partition of each file of the table."""
    for row in pa.table(table.get_add_actions()).to_pylist():
        partition = row.get("partition") or {}
        yield row["path"], row["size_bytes"], _texts(partition, partition_by)


def _added(files: Sequence[StagedFile], partition_by: tuple[str, ...]) -> list[AddAction | RemoveAction]:
    from deltalake.transaction import AddAction

    now_ms = time.time_ns() // 1_000_000
    return [
        AddAction(
            path=file.path,
            size=file.size,
            partition_values=partition_values(file, partition_by),
            modification_time=now_ms,
            data_change=True,
            stats=file.statistics,
        )
        for file in files
    ]


def _commit(
    table: DeltaTable,
    actions: list[AddAction | RemoveAction],
    partition_by: tuple[str, ...],
    properties: CommitProperties,
) -> None:
    table.create_write_transaction(actions, "append", table.schema(), list(partition_by), commit_properties=properties)


def _column(table: str, name: str) -> str:
    return f"{table}.{_quoted(name)}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _texts(partition: dict[str, object], partition_by: Sequence[str]) -> Values:
    # An empty text is a null in the protocol.
    return tuple(None if partition[name] == "" else value_text(partition[name], name) for name in partition_by)
