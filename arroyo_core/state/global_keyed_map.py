"""The global keyed table: key and value as msgpack, every key visible to every subtask.

Of a partitioned one a subtask sees only the keys that it owns, which are stored inside its key range.
Only keys that changed since the last checkpoint are written; a removed key is written as a
tombstone, which counts until compaction has merged all older files of its key. Of two subtasks
that write one key in one epoch, the one with the greater index wins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from arroyo_core.api.hashing import hash_bytes, hash_columns
from arroyo_core.api.views import GlobalKeyedState
from arroyo_core.ids import FULL_KEY_RANGE, KeyRange
from arroyo_core.proto.state_pb2 import (
    GlobalKeyedTableSubtaskCheckpointMetadata,
    StateFile,
    TableConfig,
    TableSubtaskCheckpointMetadata,
    TableType,
)
from arroyo_core.state import codec
from arroyo_core.state.chunks import combine, cut_rows, fits_chunk, one_chunk
from arroyo_core.state.config import KEY_HASH_COLUMN, OPERATION_COLUMN, decode_global_config
from arroyo_core.state.failures import StateValueError
from arroyo_core.state.file_access import FileAccess
from arroyo_core.state.files import MAX_FILE_BYTES, Hashes, key_hashes, sort_by_key_hash
from arroyo_core.state.keys import place_in_range
from arroyo_core.state.messages import (
    CheckpointMessage,
    CommitData,
    Compacted,
    KeyedData,
    OperationCode,
    StateMessage,
    TableData,
    TableMessage,
)
from arroyo_core.state.references import carry_forward, file_order
from arroyo_core.state.staged import is_inline

K = TypeVar("K")
V = TypeVar("V")

GLOBAL_KEY_VALUE_SCHEMA = pa.schema(
    [
        pa.field("key", pa.binary(), nullable=False),
        pa.field("value", pa.binary()),
        pa.field(KEY_HASH_COLUMN, pa.uint64(), nullable=False),
        pa.field(OPERATION_COLUMN, pa.uint8(), nullable=False),
    ]
)

#: Up to this many rows a view decodes its files at once; above, it looks keys up in the sorted runs.
EAGER_ROWS = 20_000

_SCALARS = (int, str, float, bool, bytes, type(None))
_ABSENT = object()


class StoredValues:
    """What the files of a global table say of each key: its newest value and that value's version.

    The hashes of a partitioned table are moved into `placement`. With `is_looked_up` off there are no lookups.
    """

    def __init__(
        self,
        runs: Sequence[tuple[pa.Table, int]],
        *,
        placement: KeyRange = FULL_KEY_RANGE,
        is_looked_up: bool = True,
    ) -> None:
        self._runs = [_StoredRun(table, version) for table, version in runs if table.num_rows]
        self._placement = placement
        self._eager: dict[bytes, tuple[bytes, int]] | None = None
        if is_looked_up and sum(table.num_rows for table, _ in runs) <= EAGER_ROWS:
            self._eager = self._load()

    @property
    def is_eager(self) -> bool:
        """Whether a lookup is no more than one of a dictionary."""
        return self._eager is not None

    def find(self, key: bytes) -> tuple[bytes, int] | None:
        if self._eager is not None:
            return self._eager.get(key)
        key_hash = place_in_range(np.array([hash_bytes(key)], dtype=np.uint64), self._placement)[0]
        for run in reversed(self._runs):
            row = run.find(key, key_hash)
            if row is not None:
                return row if row[0] is not None else None
        return None

    def items(self) -> Iterator[tuple[bytes, tuple[bytes, int]]]:
        yield from (self._eager if self._eager is not None else self._load()).items()

    def _load(self) -> dict[bytes, tuple[bytes, int]]:
        loaded: dict[bytes, tuple[bytes, int]] = {}
        for run in self._runs:
            for key, value in zip(run.keys.to_pylist(), run.values.to_pylist(), strict=True):
                if value is None:
                    loaded.pop(key, None)
                else:
                    loaded[key] = (value, run.version)
        return loaded


class _StoredRun:
    def __init__(self, table: pa.Table, version: int) -> None:
        self.hashes: Hashes = key_hashes(table)
        self.keys = one_chunk(table.column("key"))
        self.values = one_chunk(table.column("value"))
        self.version = version

    def find(self, key: bytes, key_hash: np.uint64) -> tuple[Any, int] | None:
        row = int(np.searchsorted(self.hashes, key_hash, side="left"))
        while row < len(self.hashes) and self.hashes[row] == key_hash:
            if self.keys[row].as_py() == key:
                return self.values[row].as_py(), self.version
            row += 1
        return None


class GlobalKeyedView(GlobalKeyedState[K, V]):
    """A subtask's view of a global keyed table; its methods are described by `GlobalKeyedState`."""

    def __init__(
        self,
        *,
        table: str,
        stored: StoredValues,
        key_type: Any,
        value_type: Any,
        state_version: int,
        send: Callable[[StateMessage], None],
    ) -> None:
        codec.check_version(value_type, table=table, declared=state_version)
        self._table = table
        self._stored = stored
        self._value_type = value_type
        self._version = state_version
        self._send = send
        self._decode_key = codec.key_decoder(key_type, table=table)
        self._decoders: dict[int, codec.Decoder] = {}
        #: What was inserted since the table was opened; None for a removed key.
        self._changes: dict[bytes, bytes | None] = {}
        self._decoded: dict[bytes, Any] = {}

    def get(self, key: K, default: V | None = None) -> V | None:
        value = self._value(self._encode_key(key))
        return default if value is _ABSENT else value

    def __contains__(self, key: K) -> bool:
        return self._find(self._encode_key(key)) is not None

    def insert(self, key: K, value: V) -> None:
        encoded_key = self._encode_key(key)
        encoded = codec.encode(value, table=self._table, what="value")
        known = encoded_key in self._changes or self._stored.is_eager
        if known and self._find(encoded_key) == (encoded, self._version):
            return
        self._changes[encoded_key] = encoded
        self._send(TableMessage(self._table, KeyedData(encoded_key, encoded)))
        if self._value_type is None and type(value) in _SCALARS:
            self._decoded[encoded_key] = value
        else:
            self._decoded.pop(encoded_key, None)

    def remove(self, key: K) -> V | None:
        encoded_key = self._encode_key(key)
        value = self._value(encoded_key)
        if value is _ABSENT:
            return None
        self._changes[encoded_key] = None
        self._decoded.pop(encoded_key, None)
        self._send(TableMessage(self._table, KeyedData(encoded_key, None)))
        removed: V | None = value
        return removed

    def get_all(self) -> dict[K, V]:
        keys = [key for key, _ in self._stored.items()]
        known = set(keys)
        keys.extend(key for key in self._changes if key not in known)
        found = ((key, self._value(key)) for key in keys)
        return {self._decode_key(key): value for key, value in found if value is not _ABSENT}

    def _encode_key(self, key: K) -> bytes:
        return codec.encode(key, table=self._table, what="key")

    def _find(self, key: bytes) -> tuple[bytes, int] | None:
        if key in self._changes:
            changed = self._changes[key]
            return None if changed is None else (changed, self._version)
        return self._stored.find(key)

    def _value(self, key: bytes) -> Any:
        value = self._decoded.get(key, _ABSENT)
        if value is not _ABSENT:
            return value
        found = self._find(key)
        if found is None:
            return _ABSENT
        value = self._decoder(found[1])(found[0])
        self._decoded[key] = value
        return value

    def _decoder(self, written: int) -> codec.Decoder:
        decoder = self._decoders.get(written)
        if decoder is None:
            decoder = codec.value_decoder(self._value_type, table=self._table, written=written, current=self._version)
            self._decoders[written] = decoder
        return decoder


class GlobalKeyedTableCheckpointer:
    """Collects one epoch's change of a global table, and writes it."""

    def __init__(self, table: GlobalKeyedTable) -> None:
        self._table = table
        self._changes: dict[bytes, bytes | None] = {}
        self._commit_data: bytes | None = None

    def insert_data(self, data: TableData) -> None:
        if isinstance(data, KeyedData):
            self._changes[data.key] = data.value
        elif isinstance(data, CommitData):
            self._insert_commit_data(data.data)
        else:
            raise StateValueError(f"table {self._table.name!r} holds keys and values, not batches")

    def finish(self, message: CheckpointMessage) -> tuple[TableSubtaskCheckpointMetadata, int]:
        """Write the change, if any; returns the table's part of the checkpoint, and the bytes written or staged."""
        table = self._table
        carried = [*table.carried, *table.own]
        changes = {key: value for key, value in self._changes.items() if table.has_older_files or value is not None}
        written = table.write(changes, message.epoch)
        table.own += written
        carried += written
        staged = self._commit_data
        if staged is None or is_inline(staged):
            part = GlobalKeyedTableSubtaskCheckpointMetadata(files=carried, commit_data=staged)
        else:
            file = table.access.stage(staged, table_name=table.name, epoch=message.epoch)
            part = GlobalKeyedTableSubtaskCheckpointMetadata(files=carried, commit_file=file)
        metadata = TableSubtaskCheckpointMetadata(
            subtask_index=table.access.task_info.task_index, table_type=TableType.GLOBAL_KEY_VALUE, global_keyed=part
        )
        return metadata, sum(file.size_bytes for file in written) + len(staged or b"")

    def _insert_commit_data(self, data: bytes) -> None:
        if not self._table.uses_two_phase_commit:
            raise StateValueError(
                f"table {self._table.name!r} is not declared with uses_two_phase_commit=True: it takes no commit data"
            )
        if self._commit_data is not None:
            raise StateValueError(f"table {self._table.name!r} was given commit data twice in one epoch")
        self._commit_data = data


class GlobalKeyedTable:
    """One global keyed table of one subtask.

    The subtask reads every live file, and carries forward the part inside its own key range: so
    each file is carried exactly once, whatever the parallelism. Of a partitioned table it reads
    that part only. `is_handed_over` says that the keys of a partitioned table are where other subtasks, or none, put
    them: it is read whole then, and nothing is carried, because each owner writes what it owns.
    """

    table_type = TableType.GLOBAL_KEY_VALUE

    def __init__(
        self,
        *,
        name: str,
        config: TableConfig,
        access: FileAccess,
        files: Sequence[StateFile],
        is_handed_over: bool = False,
    ) -> None:
        settings = decode_global_config(config)
        key_range = access.task_info.key_range
        self.name = name
        self.access = access
        self.state_version = config.state_version
        self.uses_two_phase_commit = settings.uses_two_phase_commit
        self.is_partitioned = settings.partitioned
        self.is_handed_over = is_handed_over
        self._placement = key_range if settings.partitioned else FULL_KEY_RANGE
        #: What of the checkpoint that was opened this subtask carries forward, oldest first.
        self.carried = [] if is_handed_over else carry_forward(files, key_range=key_range)
        #: Live files of that checkpoint, oldest first: what a view reads.
        is_read_whole = is_handed_over or not settings.partitioned
        self._opened = sorted(files, key=file_order) if is_read_whole else list(self.carried)
        #: Files this subtask wrote since; their keys may belong to any range.
        self.own: list[StateFile] = []

    def view(self, key_type: Any, value_type: Any, send: Callable[[StateMessage], None]) -> GlobalKeyedView[Any, Any]:
        """Read the table; raises before anything is written if a file is of a version that cannot be read."""
        return GlobalKeyedView(
            table=self.name,
            stored=self.read(value_type),
            key_type=key_type,
            value_type=value_type,
            state_version=self.state_version,
            send=send,
        )

    def read(self, value_type: Any) -> StoredValues:
        """What the view of this subtask begins with; raises as `view` does."""
        for version in {file.state_version for file in self._opened}:
            codec.value_decoder(value_type, table=self.name, written=version, current=self.state_version)
        tables = self.access.for_each(self._opened, lambda file: self.access.read(file, FULL_KEY_RANGE))
        runs = [(table, file.state_version) for table, file in zip(tables, self._opened, strict=True)]
        return StoredValues(runs, placement=self._placement, is_looked_up=not self.is_handed_over)

    @property
    def has_older_files(self) -> bool:
        """Whether a tombstone can have anything to hide, in any subtask's range."""
        return bool(self.own or (self.carried if self.is_partitioned else self._opened))

    @property
    def has_stored_keys(self) -> bool:
        return bool(self._opened)

    def checkpointer(self) -> GlobalKeyedTableCheckpointer:
        return GlobalKeyedTableCheckpointer(self)

    def write(self, changes: dict[bytes, bytes | None], epoch: int) -> list[StateFile]:
        """Store one epoch's change: in one file, unless it is large."""
        parts = [part for rows in change_tables(changes, self._placement) for part in cut_rows(rows, MAX_FILE_BYTES)]
        return [
            self.access.write(
                combine(part), table_name=self.name, epoch=epoch, state_version=self.state_version, part=number
            )
            for number, part in enumerate(parts)
        ]

    def swap_compacted(self, compacted: Compacted) -> None:
        """Let new files stand for those they were made of."""
        replaced = {(file.path, file.live_key_start) for file in compacted.replaced}
        kept = [file for file in self.carried if (file.path, file.live_key_start) not in replaced]
        self.carried = sorted([*kept, *compacted.files], key=file_order)


def change_tables(changes: dict[bytes, bytes | None], placement: KeyRange = FULL_KEY_RANGE) -> Iterator[pa.Table]:
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


def change_table(changes: dict[bytes, bytes | None], placement: KeyRange) -> pa.Table:
    """Keys with their new values as the rows of a file."""
    keys = pa.array(changes.keys(), pa.binary())
    values = pa.array(changes.values(), pa.binary())
    operations = np.where(
        values.is_null().to_numpy(zero_copy_only=False), OperationCode.DELETE_KEY, OperationCode.INSERT
    ).astype(np.uint8)
    hashes = pa.array(place_in_range(hash_columns([keys]), placement), pa.uint64())
    table = pa.Table.from_arrays([keys, values, hashes, pa.array(operations)], schema=GLOBAL_KEY_VALUE_SCHEMA)
    return sort_by_key_hash(table)
