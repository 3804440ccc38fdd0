"""Reads the streams that a checkpoint has for a commit: whoever can write to its storage may have made them.

What no sink writes is refused before it takes memory, and its form before a transaction begins. Values are not doubted:
who can change them without a trace can change state as well.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pyarrow as pa

from arroyo_connectors.changes import DELETED, Mode, plain_type
from arroyo_connectors.limits import STAGED_BATCH_BYTES
from arroyo_core.api.ipc_sizes import unpacked_sizes
from arroyo_core.errors import Domain, RetryHint, StateError

#: Rows of a batch, at most: a column of NULLs takes no bytes, however many there are.
BATCH_ROWS = 65_536
VERSION = 1
METADATA = b"arroyo_connectors"
#: The end of a stream of Arrow IPC. Arrow takes a stream without one for whole.
_END = b"\xff\xff\xff\xff\0\0\0\0"
_UNREADABLE = (pa.ArrowException, OSError, EOFError, ValueError)


class Staged(msgspec.Struct, frozen=True, kw_only=True):
    """What the rows of a subtask have in common; kept with them, since settings may change before a commit."""

    mode: Mode
    keys: tuple[str, ...] = ()
    version: int = VERSION


class DamagedCommitError(StateError):
    """What a checkpoint has for a commit is not what a sink wrote; no retry helps."""

    domain = Domain.EXTERNAL
    retry = RetryHint.NO_RETRY


class StagedStream:
    """The rows of one subtask. Raises `DamagedCommitError` for what is not a whole stream of a sink."""

    def __init__(self, subtask: int, data: bytes) -> None:
        self._what = f"commit data of subtask {subtask}"
        self._data = data
        reader = self._open()
        self.staged = self._read_staged(reader.schema)
        #: The columns as they are staged, of changes with the one that says which are deleted.
        self.schema: pa.Schema = reader.schema.remove_metadata()
        self._check_columns()
        self._check_sizes()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Batch after batch, each unpacked when it is asked for."""
        reader = self._open()
        while True:
            try:
                rows = reader.read_next_batch()
            except StopIteration:
                return
            except _UNREADABLE as error:
                raise self._damaged(f"cannot be read: {error}") from error
            self._check_batch(rows)
            yield rows.replace_schema_metadata(None)

    def _open(self) -> pa.ipc.RecordBatchStreamReader:
        if not self._data.endswith(_END):
            raise self._damaged("are cut: they have no end")
        try:
            return pa.ipc.open_stream(pa.BufferReader(self._data))
        except _UNREADABLE as error:
            raise self._damaged(f"are not rows: {error}") from error

    def _read_staged(self, schema: pa.Schema) -> Staged:
        written = (schema.metadata or {}).get(METADATA)
        if written is None:
            raise self._damaged("do not say how their rows change")
        try:
            staged = msgspec.json.decode(written, type=Staged)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise self._damaged(f"do not say how their rows change: {error}") from error
        if staged.version > VERSION:
            raise StateError(
                f"rows were staged by a newer arroyo-connectors (version {staged.version} of the stream, this one "
                f"reads {VERSION}): finish the commit with that one"
            )
        return staged

    def _check_columns(self) -> None:
        try:
            # They may be any bytes, and are decoded here.
            names = self.schema.names
            for kind in self.schema.types:
                _decode_names(kind)
        except UnicodeDecodeError as error:
            raise self._damaged(f"have a name that is not UTF-8: {error}") from error
        if len(set(names)) != len(names):
            raise self._damaged("have two columns of one name")
        kept = next((field for field in self.schema if plain_type(field.type) != field.type), None)
        if kept is not None:
            raise self._damaged(f"have a column {kept.name!r} of {kept.type}, and no sink stages such")
        if self.staged.mode is Mode.APPEND:
            return
        if DELETED not in names or self.schema.field(DELETED).type != pa.bool_():
            raise self._damaged("have changes, and do not say which rows are deleted")
        missing = [key for key in self.staged.keys if key not in names or key == DELETED]
        if missing or not self.staged.keys:
            raise self._damaged(f"have changes without their key{f': no column {missing[0]!r}' if missing else ''}")

    def _check_sizes(self) -> None:
        for size in unpacked_sizes(memoryview(self._data), is_file=False):
            self._check_size(size)

    def _check_batch(self, rows: pa.RecordBatch) -> None:
        if rows.num_rows > BATCH_ROWS:
            raise self._damaged(f"have {rows.num_rows} rows in a batch, where a sink stages at most {BATCH_ROWS}")
        try:
            # Offsets beyond the values would be followed out of the batch, also to find its size.
            rows.validate()
            self._check_size(memory_of(rows))
            rows.validate(full=True)
        except _UNREADABLE as error:
            raise self._damaged(f"have values that are none: {error}") from error
        if self.staged.mode is Mode.UPSERT and rows.column(DELETED).null_count:
            raise self._damaged("do not say of each row whether it is deleted")

    def _check_size(self, size: int) -> None:
        problem = STAGED_BATCH_BYTES.problem(size)
        if problem is not None:
            raise self._damaged(f"are too large: {problem}")

    def _damaged(self, why: str) -> DamagedCommitError:
        return DamagedCommitError(
            f"{self._what} {why}. They are not what the sink has staged, and nothing was committed. Who can write to "
            "the checkpoint URL besides this job?"
        )


def memory_of(rows: pa.RecordBatch) -> int:
    """What a batch may take, at most: buffers may overlap, and values without bytes be inside of others."""
    return int(rows.nbytes) + sum(_bare_values(column) for column in rows.columns)


def _decode_names(kind: pa.DataType) -> None:
    """Raise `UnicodeDecodeError` for a name of a field within, or of a zone."""
    if pa.types.is_timestamp(kind):
        str(kind.tz)
    for place in range(kind.num_fields):
        field = kind.field(place)
        str(field.name)
        _decode_names(field.type)


def _bare_values(column: pa.Array) -> int:
    """How many values inside of others take no bytes, such as the NULLs of a list of them."""
    kind = column.type
    if pa.types.is_struct(kind):
        return sum(_bare_values(column.field(place)) for place in range(kind.num_fields))
    if pa.types.is_map(kind):
        return _bare_values(column.keys) + _bare_values(column.items)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _bare_values(column.values)
    return len(column) if pa.types.is_null(kind) else 0
