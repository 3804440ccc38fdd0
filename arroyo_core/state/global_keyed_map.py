"""The global keyed table: key and value as msgpack, every key visible to every subtask.

Of a partitioned one a subtask sees only the keys that it owns, which are stored inside its key range.
Only keys that changed since the last checkpoint are written; a removed key is written as a
tombstone, which counts until compaction has merged all older files of its key. Of two subtasks
that write one key in one epoch, the one with the greater index wins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from arroyo_core.api.hashing import hash_columns
from arroyo_core.ids import FULL_KEY_RANGE, KeyRange
from arroyo_core.proto.state_pb2 import (
    GlobalKeyedTableSubtaskCheckpointMetadata,
    GlobalKeyedTableTaskCheckpointMetadata,
    StateFile,
    TableCheckpointMetadata,
    TableConfig,
    TableSubtaskCheckpointMetadata,
    TableType,
)
from arroyo_core.state import codec
from arroyo_core.state.chunks import combine, cut_rows, fits_chunk
from arroyo_core.state.config import KEY_HASH_COLUMN, OPERATION_COLUMN, decode_global_config
from arroyo_core.state.failures import StaleViewError, StateValueError, WrongTableKindError
from arroyo_core.state.files import MAX_FILE_BYTES, key_hashes, sort_by_key_hash
from arroyo_core.state.global_keyed_view import GlobalKeyedView, StoredValues
from arroyo_core.state.keys import group_codes, place_in_range
from arroyo_core.state.live_files import carry_forward, file_order, merge_references
from arroyo_core.state.messages import CheckpointMessage, CommitData, KeyedData, OperationCode, TableData
from arroyo_core.state.partitioned import PartitionedKeyedView
from arroyo_core.state.rows import operations
from arroyo_core.state.table import Staged, Table, TableOpening

#: Commit data of one subtask and table goes into a file of its own from here on.
MAX_INLINE_BYTES = 64 * 1024

GLOBAL_KEY_VALUE_SCHEMA = pa.schema(
    [
        pa.field("key", pa.binary(), nullable=False),
        pa.field("value", pa.binary()),
        pa.field(KEY_HASH_COLUMN, pa.uint64(), nullable=False),
        pa.field(OPERATION_COLUMN, pa.uint8(), nullable=False),
    ]
)


class GlobalKeyedTableCheckpointer:
    """Collects one epoch's change of a global table, and writes it."""

    def __init__(self, table: GlobalKeyedTable) -> None:
        self._table = table
        self._changes: dict[bytes, bytes | None] = {}
        self._commit_data: bytes | None = None

    def insert_data(self, data: TableData) -> None:
        if isinstance(data, KeyedData):
            self._changes.update(data.changes)
        elif isinstance(data, CommitData):
            self._insert_commit_data(data.data)
        else:
            raise StateValueError(f"table {self._table.name!r} holds keys and values, not batches")

    def finish(self, message: CheckpointMessage) -> tuple[TableSubtaskCheckpointMetadata, int]:
        table, staged = self._table, self._commit_data
        if table.view is not None:
            self.insert_data(table.view.take_changes())
        changes = {key: value for key, value in self._changes.items() if table.has_older_files or value is not None}
        written = table.write(changes, message.epoch)
        table.own += written
        metadata = table.subtask_metadata()
        if staged is not None:
            if len(staged) <= MAX_INLINE_BYTES:
                metadata.global_keyed.commit_data = staged
            else:
                file = table.access.stage(staged, table_name=table.name, epoch=message.epoch)
                metadata.global_keyed.commit_file.CopyFrom(file)
        return metadata, sum(file.size_bytes for file in written) + len(staged or b"")

    def _insert_commit_data(self, data: bytes) -> None:
        if not self._table.is_committing:
            raise StateValueError(
                f"table {self._table.name!r} is not declared with uses_two_phase_commit=True: it takes no commit data"
            )
        if self._commit_data is not None:
            raise StateValueError(f"table {self._table.name!r} was given commit data twice in one epoch")
        self._commit_data = data


class GlobalKeyedTable(Table[GlobalKeyedView[Any, Any]]):
    """One global keyed table of one subtask.

    The subtask reads every live file, and carries forward the part inside its own key range: so
    each file is carried exactly once, whatever the parallelism. Of a partitioned table it reads
    that part only. Where the keys of a partitioned table are handed over, other subtasks, or none, put them where they
    are: it is read whole then, and nothing is carried, because each owner writes what it owns.
    """

    table_type = TableType.GLOBAL_KEY_VALUE
    type_name = "GLOBAL_KEY_VALUE"

    def __init__(self, opening: TableOpening) -> None:
        super().__init__(opening)
        settings = decode_global_config(opening.config)
        files, task = opening.files, opening.access.task_info
        self.state_version = opening.config.state_version
        self.is_committing = settings.uses_two_phase_commit
        self.is_partitioned = settings.partitioned
        was_partitioned = opening.written is not None and decode_global_config(opening.written).partitioned
        is_placed = was_partitioned and opening.written_parallelism == task.parallelism
        self.is_handed_over = settings.partitioned and bool(files) and not is_placed
        self._placement = task.key_range if settings.partitioned else FULL_KEY_RANGE
        if self.is_handed_over:
            self.carried = []
        #: Live files of the checkpoint that was opened, oldest first: what a view reads.
        self._opened = self._files_to_read(files)
        #: Files this subtask wrote since; their keys may belong to any range.
        self.own: list[StateFile] = []
        #: Whether no other subtask has written in the last epoch, and whether the view is in use before that is known.
        self._is_quiet = False
        self._is_used = False

    @classmethod
    def file_schema(cls, config: TableConfig) -> pa.Schema:
        return GLOBAL_KEY_VALUE_SCHEMA

    @classmethod
    def derive_mismatch(cls, written: TableConfig, declared: TableConfig) -> str | None:
        """A table may become partitioned: what all subtasks saw can be dealt out, and was written by one of them."""
        if decode_global_config(written).partitioned and not decode_global_config(declared).partitioned:
            return "is partitioned in the checkpoint, and declared without is_partitioned=True"
        return None

    @classmethod
    def uses_two_phase_commit(cls, config: TableConfig) -> bool:
        return decode_global_config(config).uses_two_phase_commit

    @classmethod
    def files(cls, table: TableCheckpointMetadata) -> Sequence[StateFile]:
        return table.global_keyed.files

    @classmethod
    def staged(cls, table: TableCheckpointMetadata) -> Staged:
        return Staged(table.global_keyed.commit_data_by_subtask, table.global_keyed.commit_files_by_subtask)

    @classmethod
    def clear_staged(cls, table: TableCheckpointMetadata) -> None:
        table.global_keyed.commit_data_by_subtask.clear()
        table.global_keyed.commit_files_by_subtask.clear()

    @classmethod
    def merge_checkpoint_metadata(cls, parts: Sequence[TableSubtaskCheckpointMetadata]) -> TableCheckpointMetadata:
        by_subtask = {part.subtask_index: part.global_keyed for part in parts}
        merged = GlobalKeyedTableTaskCheckpointMetadata(
            files=merge_references(file for part in parts for file in part.global_keyed.files),
            commit_data_by_subtask={
                subtask: part.commit_data for subtask, part in by_subtask.items() if part.HasField("commit_data")
            },
            commit_files_by_subtask={
                subtask: part.commit_file for subtask, part in by_subtask.items() if part.HasField("commit_file")
            },
        )
        return TableCheckpointMetadata(table_type=cls.table_type, global_keyed=merged)

    def subtask_metadata(self) -> TableSubtaskCheckpointMetadata:
        return TableSubtaskCheckpointMetadata(
            subtask_index=self.access.task_info.task_index,
            table_type=self.table_type,
            global_keyed=GlobalKeyedTableSubtaskCheckpointMetadata(files=[*self.carried, *self.own]),
        )

    def check_partitioned(self, wanted: bool) -> None:
        """Raise `WrongTableKindError` if the table is declared with another kind of view."""
        if self.is_partitioned and not wanted:
            raise WrongTableKindError(f"{self._described()} is partitioned: get_partitioned_keyed_state gives its view")
        if wanted and not self.is_partitioned:
            raise WrongTableKindError(f"{self._described()} is not declared with is_partitioned=True")

    def keyed_view(self, key_type: Any, value_type: Any) -> GlobalKeyedView[Any, Any]:
        """Read the table; raises before anything is written if a file is of a version that cannot be read."""
        return GlobalKeyedView(
            table=self.name,
            stored=self._read(value_type),
            key_type=key_type,
            value_type=value_type,
            state_version=self.state_version,
        )

    def partitioned_view(
        self, owner: Callable[[Any], int], key_type: Any, value_type: Any
    ) -> PartitionedKeyedView[Any, Any]:
        """Read what the subtask owns; raises as `keyed_view` does."""
        return PartitionedKeyedView(
            table=self.name,
            restored=self._read(value_type),
            is_handed_over=self.is_handed_over,
            owner=owner,
            task=self.access.task_info,
            key_type=key_type,
            value_type=value_type,
            state_version=self.state_version,
        )

    def go_on(self, files: Sequence[StateFile]) -> None:
        """What was written is part of the checkpoint now, and divided among the subtasks like all the rest."""
        known = {file.path for file in (*self._opened, *self.own)}
        self.carried = carry_forward(files, key_range=self.access.task_info.key_range, shadows=self.is_shadowing)
        self.own = []
        self.is_handed_over = False
        self._opened = self._files_to_read(files)
        others = [file for file in self._opened if file.path not in known] if self._is_shared else []
        # What others have merged says the same as before.
        self._is_quiet = all(file.compaction_generation for file in others)
        if self.view is not None and others:
            if self._is_used and not self._is_quiet:
                raise StaleViewError(f"{self._described()} was written to by another subtask while it was in use")
            if not self._is_used:
                self.view.read_again(self._read(self.view.value_type))
        self._is_used = False

    def begin_early(self) -> None:
        self._is_used = True

    @property
    def waits_for_others(self) -> bool:
        """Others may write at any time, but mostly they do so at the beginning only, or never.

        So it is not waited for where nobody has written in the epoch before; `go_on` raises where somebody has, after
        all.
        """
        return self._is_shared and self.view is not None and not self._is_quiet

    @property
    def _is_shared(self) -> bool:
        return not self.is_partitioned and self.access.task_info.parallelism > 1

    def check_view(self) -> None:
        """A partitioned table must be dealt out again when the parallelism changes: nobody may leave it unread."""
        if self.is_partitioned and self._opened and self.view is None:
            raise WrongTableKindError(
                f"{self._described()} is partitioned: every subtask must take its view, with "
                "get_partitioned_keyed_state, in every epoch"
            )

    def _files_to_read(self, files: Sequence[StateFile]) -> list[StateFile]:
        is_read_whole = self.is_handed_over or not self.is_partitioned
        return sorted(files, key=file_order) if is_read_whole else list(self.carried)

    def _read(self, value_type: Any) -> StoredValues:
        for version in {file.state_version for file in self._opened}:
            codec.value_decoder(value_type, table=self.name, written=version, current=self.state_version)
        tables = self.access.for_each(self._opened, lambda file: self.access.read(file, FULL_KEY_RANGE))
        runs = [(table, file.state_version) for table, file in zip(tables, self._opened, strict=True)]
        return StoredValues(runs, placement=self._placement, is_looked_up=not self.is_handed_over)

    def _described(self) -> str:
        return f"table {self.name!r} of operator {self.access.task_info.operator_id!r}"

    @property
    def has_older_files(self) -> bool:
        """Whether a tombstone can have anything to hide, in any subtask's range."""
        return bool(self.own or (self.carried if self.is_partitioned else self._opened))

    def checkpointer(self) -> GlobalKeyedTableCheckpointer:
        return GlobalKeyedTableCheckpointer(self)

    def write(self, changes: Mapping[bytes, bytes | None], epoch: int) -> list[StateFile]:
        """Store one epoch's change: in one file, unless it is large."""
        parts = [part for rows in change_tables(changes, self._placement) for part in cut_rows(rows, MAX_FILE_BYTES)]
        return [
            self.access.write(
                combine(part), table_name=self.name, epoch=epoch, state_version=self.state_version, part=number
            )
            for number, part in enumerate(parts)
        ]

    def merge_rows(self, files: Sequence[StateFile], parts: Sequence[pa.Table], *, is_oldest: bool) -> pa.Table:
        plain = [part.select(GLOBAL_KEY_VALUE_SCHEMA.names).replace_schema_metadata(None) for part in parts]
        rows = sort_by_key_hash(pa.concat_tables([GLOBAL_KEY_VALUE_SCHEMA.empty_table(), *plain]))
        if rows.num_rows == 0:
            return rows
        codes = group_codes(key_hashes(rows), [rows.column("key")])
        newest = np.empty(int(codes.max()) + 1, dtype=np.int64)
        newest[codes] = np.arange(rows.num_rows)
        keep = np.zeros(rows.num_rows, dtype=np.bool_)
        keep[newest] = True
        if is_oldest:
            keep &= operations(rows) == OperationCode.INSERT
        return combine(rows.filter(pa.array(keep)))

    def to_people(self, rows: pa.Table) -> pa.Table:
        """JSON text of `key` and `value`."""
        texts = {name: [as_json(data) for data in rows.column(name).to_pylist()] for name in ("key", "value")}
        return pa.table({name: pa.array(found, pa.string()) for name, found in texts.items()}).sort_by("key")


def as_json(data: bytes) -> str:
    """A value of msgpack as text."""
    value = msgspec.msgpack.decode(data, strict=False)
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError):
        # JSON has no word for it, such as a mapping with keys that are not text: Python's will do for people.
        return repr(value)


def change_tables(changes: Mapping[bytes, bytes | None], placement: KeyRange = FULL_KEY_RANGE) -> Iterator[pa.Table]:
    """One epoch's change as rows, sorted by key hash: in one table, unless an array cannot hold its keys or values."""
    held: dict[bytes, bytes | None] = {}
    size = 0
    for key, value in changes.items():
        row_bytes = len(key) + len(value or b"")
        if held and not fits_chunk(size + row_bytes):
            yield change_table(held, placement)
            held, size = {}, 0
        held[key] = value
        size += row_bytes
    if held:
        yield change_table(held, placement)


def change_table(changes: Mapping[bytes, bytes | None], placement: KeyRange) -> pa.Table:
    """Keys with their new values as the rows of a file."""
    keys = pa.array(changes.keys(), pa.binary())
    values = pa.array(changes.values(), pa.binary())
    operations = np.where(
        values.is_null().to_numpy(zero_copy_only=False), OperationCode.DELETE_KEY, OperationCode.INSERT
    ).astype(np.uint8)
    hashes = pa.array(place_in_range(hash_columns([keys]), placement), pa.uint64())
    table = pa.Table.from_arrays([keys, values, hashes, pa.array(operations)], schema=GLOBAL_KEY_VALUE_SCHEMA)
    return sort_by_key_hash(table)
