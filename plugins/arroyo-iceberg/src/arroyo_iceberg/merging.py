"""Which rows of a table a commit replaces: copy-on-write, exact for the snapshot that the commit is made on.

Files with such rows are written again without them, and the commit takes the old ones out. It is refused if the branch
has another snapshot meanwhile; then everything is worked out again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.api.updating import row_ids
from arroyo_core.errors import DataError
from arroyo_iceberg.reading import RowReader, Unit
from arroyo_iceberg.schemas import cast_batch, stream_schema
from arroyo_iceberg.sink_settings import Mode, SinkSettings
from arroyo_iceberg.staging import DamagedCommitError, StagedFile, decode_keys, restore_file
from arroyo_iceberg.writers import OpenFiles

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot


@dataclass(frozen=True, slots=True)
class Replacement:
    """Files that go, and those with what is left of them."""

    removed: tuple[DataFile, ...] = ()
    added: tuple[DataFile, ...] = ()
    #: What tells which manifests have the files that go; None for the partitions of these.
    where: BooleanExpression | None = None


def replace_partitions(
    table: Table, snapshot: Snapshot | None, files: Sequence[StagedFile], *, base: int
) -> Replacement:
    """The files of the partitions that `files` are in, as they were at the sequence number `base`.

    Files that are older are those of before the sink's first commit. Compaction keeps the number of what it joins.
    """
    if snapshot is None:
        return Replacement()
    metadata = table.metadata
    wanted = {(file.spec_id, _values(restore_file(file, metadata), metadata)) for file in files}
    specs = {spec_id for spec_id, _ in wanted}
    removed = []
    for entry in _live_entries(table, snapshot):
        if (entry.sequence_number or 0) > base:
            continue
        file = entry.data_file
        if file.spec_id not in specs:
            raise DataError(
                f"mode: overwrite_partitions: {file.file_path} is of another partitioning than the table's present "
                "one, so it cannot be told which of its rows are to be replaced: write such files again first"
            )
        if (file.spec_id, _values(file, metadata)) in wanted:
            removed.append(file)
    return Replacement(tuple(removed))


def replace_keys(
    table: Table,
    snapshot: Snapshot | None,
    settings: SinkSettings,
    files: Sequence[StagedFile],
    deleted: Sequence[bytes],
    *,
    name: Callable[[], str],
    written: list[str],
) -> Replacement:
    """The files that have rows with the keys of `files`, or with those of `deleted`, and what is left of them.

    `written` gets the files that are made, so that they can be deleted again.
    """
    if snapshot is None:
        return Replacement()
    keys = _touched_keys(table, settings, files, deleted)
    ids = pa.chunked_array([_ids(batch, settings.keys) for batch in keys.to_batches()], pa.binary(16)).combine_chunks()
    where = _bounds(keys)
    open_files = OpenFiles(table, name, max_file_bytes=settings.max_file_bytes)
    removed = []
    try:
        for task in table.scan(row_filter=where, snapshot_id=snapshot.snapshot_id).plan_files():
            unit = Unit(task.file, tuple(task.delete_files))
            if _has_any(table, unit, settings.keys, ids):
                removed.append(task.file)
                _copy_others(table, unit, settings.keys, ids, open_files)
        made = open_files.close()
    except BaseException:
        open_files.abort()
        raise
    finally:
        written += open_files.paths
    added = tuple(restore_file(file, table.metadata) for file in made)
    return Replacement(tuple(removed), added, where)


def replace_rows(
    table: Table,
    snapshot: Snapshot | None,
    settings: SinkSettings,
    files: Sequence[StagedFile],
    deleted: Sequence[bytes],
    *,
    base: int,
    name: Callable[[], str],
    written: list[str],
) -> Replacement:
    """What the mode of the sink replaces."""
    if settings.mode is Mode.OVERWRITE_PARTITIONS:
        return replace_partitions(table, snapshot, files, base=base)
    if settings.mode is Mode.MERGE:
        return replace_keys(table, snapshot, settings, files, deleted, name=name, written=written)
    return Replacement()


def keys_of_table(table: Table, gone: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Keys as a commit compares them; raises `DataError` for one that the table cannot have."""
    schema = _key_schema(table, keys)
    doing = f"cannot delete from {'.'.join(table.name())}"
    return pa.Table.from_batches([cast_batch(batch, schema, doing=doing) for batch in gone.to_batches()], schema)


def _touched_keys(
    table: Table, settings: SinkSettings, files: Sequence[StagedFile], deleted: Sequence[bytes]
) -> pa.Table:
    columns = table.schema().select(*settings.keys)
    schema = _key_schema(table, settings.keys)
    reader = RowReader(table.io, table.metadata, columns, schema)
    parts = [
        pa.Table.from_batches([batch for batch, _ in reader.read(Unit(restore_file(file, table.metadata)))], schema)
        for file in files
    ]
    parts += [_as_keys(decode_keys(data), schema) for data in deleted]
    return pa.concat_tables([schema.empty_table(), *parts])


def _as_keys(found: pa.Table, schema: pa.Schema) -> pa.Table:
    """Raises `DamagedCommitError` for other columns: what is staged is read from the checkpoint storage."""
    try:
        return found.select(schema.names).cast(schema)
    except (KeyError, pa.ArrowException, ValueError) as error:
        raise DamagedCommitError(f"commit data have keys that are not {', '.join(schema.names)}: {error}") from error


def _key_schema(table: Table, keys: Sequence[str]) -> pa.Schema:
    """The columns of the keys in the order of the settings; may be null, whatever the table says."""
    found = stream_schema(table.schema())
    return pa.schema([pa.field(name, found.field(name).type) for name in keys])


def _has_any(table: Table, unit: Unit, keys: Sequence[str], ids: pa.Array) -> bool:
    reader = RowReader(table.io, table.metadata, table.schema().select(*keys), _key_schema(table, keys))
    return any(pc.any(_among(batch, keys, ids)).as_py() for batch, _ in reader.read(unit))


def _copy_others(table: Table, unit: Unit, keys: Sequence[str], ids: pa.Array, files: OpenFiles) -> None:
    for batch, _ in RowReader(table.io, table.metadata, table.schema()).read(unit):
        left = batch.filter(pc.invert(_among(batch, keys, ids)))
        if left.num_rows:
            files.write(left)


def _among(batch: pa.RecordBatch, keys: Sequence[str], ids: pa.Array) -> pa.Array:
    return pc.is_in(_ids(batch, keys), value_set=ids)


def _ids(batch: pa.RecordBatch, keys: Sequence[str]) -> pa.Array:
    """Of each row what all rows with the same keys have; null is a key like others."""
    return row_ids(batch.select(list(keys)), list(keys))


def _bounds(keys: pa.Table) -> BooleanExpression:
    """What rows with one of the keys match, of the columns whose values have an order that files tell."""
    from pyiceberg import expressions

    # Its terms are typed as they are serialised, not as they are made.
    make: Any = expressions
    parts: list[BooleanExpression] = []
    for name in keys.schema.names:
        column = keys.column(name)
        if column.null_count or not (pa.types.is_integer(column.type) or pa.types.is_string(column.type)):
            continue
        if not len(column):
            continue
        bounds = pc.min_max(column).as_py()
        low: Any = bounds["min"]
        high: Any = bounds["max"]
        distinct = pc.unique(column.slice(0, _MOST_VALUES + 1))
        if len(column) <= _MOST_VALUES:
            parts.append(make.In(name, set(distinct.to_pylist())))
        else:
            parts += [make.GreaterThanOrEqual(name, low), make.LessThanOrEqual(name, high)]
    if not parts:
        return expressions.AlwaysTrue()
    return parts[0] if len(parts) == 1 else expressions.And(*parts)


#: Of no more values than these each is looked for in the bounds of files.
_MOST_VALUES = 200


def _live_entries(table: Table, snapshot: Snapshot) -> Iterator[Any]:
    from pyiceberg.manifest import ManifestContent

    for manifest in snapshot.manifests(table.io):
        if manifest.content == ManifestContent.DATA:
            yield from manifest.fetch_manifest_entry(table.io, discard_deleted=True)


def _values(file: DataFile, metadata: TableMetadata) -> tuple[Any, ...]:
    fields = metadata.specs()[file.spec_id].fields
    return tuple(file.partition[place] for place in range(len(fields)))
