"""What subtasks stage with a checkpoint: data files that no snapshot refers to yet, and rows to delete.

A file is described by what its manifest entry needs, so that the commit reads no file again.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from arroyo_core.api import TaskInfo
from arroyo_core.api.ipc_sizes import unpacked_sizes
from arroyo_core.errors import DataError, Domain, RetryHint, StateError, UnsafePathError
from arroyo_iceberg.limits import KEYS_BYTES

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")


class DamagedCommitError(StateError):
    """What a checkpoint has for a commit is not what the sink wrote; no retry helps."""

    domain = Domain.EXTERNAL
    retry = RetryHint.NO_RETRY


class LostFileError(StateError):
    """A file that was staged is gone; no retry brings it back."""

    domain = Domain.EXTERNAL
    retry = RetryHint.NO_RETRY


class StagedFile(msgspec.Struct, frozen=True, array_like=True):
    """A data file that is whole and durable. Numbers of columns are field ids."""

    path: str
    rows: int
    size: int
    spec_id: int
    #: In the binary form of single values; None is null.
    partition: tuple[bytes | None, ...]
    column_sizes: dict[int, int]
    value_counts: dict[int, int]
    null_counts: dict[int, int]
    nan_counts: dict[int, int]
    lower_bounds: dict[int, bytes]
    upper_bounds: dict[int, bytes]
    split_offsets: tuple[int, ...]


class Staged(msgspec.Struct, frozen=True):
    """What one subtask has for the commit of an epoch."""

    #: The id of the table that the files are for.
    table_id: str
    files: tuple[StagedFile, ...]
    #: Keys whose rows are to be deleted beside those that the files have, as an Arrow stream. merge.
    deleted: bytes = b""
    #: Earlier epochs have been committed to this table, so that it must have a marker.
    has_earlier: bool = False
    #: Of the driver whose tasks have staged them.
    generation: int = 0


def encode_staged(staged: Staged) -> bytes:
    """As commit data."""
    return msgspec.msgpack.encode(staged)


def decode_staged(parts: Mapping[int, bytes]) -> list[Staged]:
    """Of all subtasks that had rows; raises `DamagedCommitError`."""
    try:
        return [msgspec.msgpack.decode(data, type=Staged) for data in parts.values() if data]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedCommitError(f"commit data are not what iceberg.sink has staged: {error}") from error


def describe_file(data_file: DataFile, metadata: TableMetadata) -> StagedFile:
    """A file of the table's writer, as it is staged."""
    from pyiceberg.conversions import to_bytes

    kinds = metadata.specs()[data_file.spec_id].partition_type(metadata.schema()).fields
    values = [data_file.partition[place] for place in range(len(kinds))]
    return StagedFile(
        path=data_file.file_path,
        rows=data_file.record_count,
        size=data_file.file_size_in_bytes,
        spec_id=data_file.spec_id,
        partition=tuple(
            None if value is None else to_bytes(kind.field_type, value)  # type: ignore[arg-type]
            for kind, value in zip(kinds, values, strict=True)
        ),
        column_sizes=data_file.column_sizes,
        value_counts=data_file.value_counts,
        null_counts=data_file.null_value_counts,
        nan_counts=data_file.nan_value_counts,
        lower_bounds=data_file.lower_bounds,
        upper_bounds=data_file.upper_bounds,
        split_offsets=tuple(data_file.split_offsets or ()),
    )


def restore_file(staged: StagedFile, metadata: TableMetadata) -> DataFile:
    """The file as a manifest takes it; raises `DamagedCommitError` where the table has no such partitioning."""
    from pyiceberg.conversions import from_bytes
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    spec = metadata.specs().get(staged.spec_id)
    if spec is None or len(spec.fields) != len(staged.partition):
        raise DamagedCommitError(f"{staged.path}: the table has no partitioning {staged.spec_id} as it was staged with")
    kinds = spec.partition_type(metadata.schema()).fields
    values: list[Any] = [
        None if value is None else from_bytes(kind.field_type, value)  # type: ignore[arg-type]
        for kind, value in zip(kinds, staged.partition, strict=True)
    ]
    restored = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=staged.path,
        file_format=FileFormat.PARQUET,
        partition=Record(*values),
        record_count=staged.rows,
        file_size_in_bytes=staged.size,
        column_sizes=staged.column_sizes,
        value_counts=staged.value_counts,
        null_value_counts=staged.null_counts,
        nan_value_counts=staged.nan_counts,
        lower_bounds=staged.lower_bounds,
        upper_bounds=staged.upper_bounds,
        split_offsets=list(staged.split_offsets) or None,
        sort_order_id=None,
        equality_ids=None,
        key_metadata=None,
    )
    restored.spec_id = staged.spec_id
    return restored


def encode_keys(keys: pa.Table) -> bytes:
    """Rows of keys as an Arrow stream; empty where there are none. Raises `DataError` for what no commit would take."""
    if not keys.num_rows:
        return b""
    for name in keys.schema.names:
        try:
            keys.column(name).validate(full=True)
        except pa.ArrowInvalid as error:
            raise DataError(f"key column {name!r} has a value that a table cannot have: {error}") from error
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, keys.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(keys)
    data: bytes = stream.getvalue().to_pybytes()
    problem = _size_problem(data)
    if problem is not None:
        raise DataError(f"an epoch deletes more keys than it may: {problem}")
    return data


def decode_keys(data: bytes) -> pa.Table:
    """Raises `DamagedCommitError`."""
    problem = _size_problem(data)
    if problem is not None:
        raise DamagedCommitError(f"commit data have keys that are too large: {problem}")
    try:
        keys = pa.ipc.open_stream(data).read_all()
        # Offsets beyond the values would be followed out of them. Names are decoded.
        keys.validate(full=True)
        str(keys.schema.names)
        return keys
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DamagedCommitError(f"commit data have no keys where they should: {error}") from error


def _size_problem(data: bytes) -> str | None:
    return KEYS_BYTES.problem(sum(unpacked_sizes(memoryview(data), is_file=False)))


class FileNames:
    """The names of an operator's files, which no other operator, job or attempt has.

    All that an epoch stages is in one folder of the table's data folder, where the table does not spread its files by
    hashes: when the epoch is committed, whatever else is there is of attempts that did not count.
    """

    def __init__(self, incarnation: str, task_info: TaskInfo) -> None:
        self.folder = f"arroyo-{incarnation or 'none'}-{_UNSAFE.sub('_', task_info.operator_id)}"
        self._task_index = task_info.task_index

    def staged(self, epoch: int) -> str:
        """A name in the data folder, for a file of this epoch."""
        return f"{self.epoch_folder(epoch)}/{self._task_index:05}-{uuid.uuid4().hex}.parquet"

    def rewritten(self, epoch: int) -> str:
        """A name for a file that a commit makes of one that the table has. Two drivers may commit the same epoch."""
        return f"{self.folder}/{epoch:08}-rewritten/{uuid.uuid4().hex}.parquet"

    def epoch_folder(self, epoch: int) -> str:
        return f"{self.folder}/{epoch:08}"


def check_paths(table: Table, files: Iterable[StagedFile], names: FileNames) -> None:
    """Raise `UnsafePathError` unless all files are the operator's own, below the data folder of the table.

    Commit data are read from the checkpoint storage, and others may write there.
    """
    data = table.location_provider().data_path.rstrip("/")
    own = re.compile(rf"([01]+/)*(?:[01]+-)?{re.escape(names.folder)}/[0-9]{{8,}}/[0-9]{{5,}}-[0-9a-f]{{32}}\.parquet")
    for file in files:
        if not (file.path.startswith(f"{data}/") and own.fullmatch(file.path.removeprefix(f"{data}/"))):
            raise UnsafePathError(
                f"commit data would add {file.path!r}, which the sink did not stage below {data}; nothing was "
                "committed. Who can write to the checkpoint URL besides this job?"
            )
