"""Several files written as one: the same rows in the same order, in the same format."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from arroyo_core.errors import DataError, naming_path
from arroyo_filesystem.location import Location

#: Rows of a row group, and their size in memory, up to which they are gathered.
GROUP_ROWS, GROUP_BYTES = 2**20, 64 * 2**20
COPIED_BYTES = 2**20

Copy = Callable[[Location, Sequence[str], BinaryIO], int | None]


def can_merge(path: str) -> bool:
    """Whether files of such names can be written as one."""
    return _ending(path) in _COPIES


def merge_files(location: Location, paths: Sequence[str], stream: BinaryIO) -> int | None:
    """Write what is in files to a stream; the number of rows, None where it is not counted.

    Raises `DataError` naming a file whose columns are not those of the first, and where one cannot be read.
    """
    with _naming_damage(f"{len(paths)} files from {paths[0]!r} on cannot be written as one"):
        return _COPIES[_ending(paths[0])](location, paths, stream)


def columns_of(location: Location, path: str) -> Any:
    """Something that is equal for files that can be merged: their columns, for formats that have them in each file.

    None for a file that cannot be merged. Raises `DataError` naming one that cannot be read.
    """
    read = _COLUMNS.get(_ending(path))
    if read is None:
        return ()
    full = location.child(path)
    with (
        _naming_damage(f"{path!r} cannot be read"),
        closing(location.fs.open(full, "rb")) as stream,
        naming_path(full),
    ):
        return read(stream)


@contextmanager
def _naming_damage(what: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowInvalid, OSError) as error:
        # Of damaged bytes Arrow raises either, without a number.
        if isinstance(error, OSError) and (type(error) is not OSError or error.errno is not None):
            raise
        raise DataError(f"{what}: {' '.join(str(error).split())}") from error


def _ending(path: str) -> str:
    return path.rpartition("/")[2].rpartition(".")[2]


def _parquet_columns(stream: Any) -> pa.Schema:
    return pq.ParquetFile(stream).schema_arrow


def _arrow_columns(stream: Any) -> pa.Schema | None:
    schema = pa.ipc.open_file(stream).schema
    # A file has one dictionary for each column, and each of these files may have another one.
    return None if any(_has_dictionary(field.type) for field in schema) else schema


def _has_dictionary(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return True
    return any(_has_dictionary(kind.field(index).type) for index in range(kind.num_fields))


def _merge_parquet(location: Location, paths: Sequence[str], stream: BinaryIO) -> int:
    total = 0
    with ExitStack() as stack:
        writer: pq.ParquetWriter | None = None
        gathered: list[pa.Table] = []
        rows = size = 0
        for path in paths:
            full = location.child(path)
            with closing(location.fs.open(full, "rb")) as source, naming_path(full):
                file = pq.ParquetFile(source)
                if writer is None:
                    writer = pq.ParquetWriter(stream, file.schema_arrow, **_compression(file))
                    stack.enter_context(writer)
                _check_columns(path, file.schema_arrow, writer.schema)
                for index in range(file.num_row_groups):
                    group = file.read_row_group(index)
                    gathered.append(group)
                    total, rows, size = total + group.num_rows, rows + group.num_rows, size + group.nbytes
                    if rows >= GROUP_ROWS or size >= GROUP_BYTES:
                        writer.write_table(pa.concat_tables(gathered), row_group_size=GROUP_ROWS)
                        gathered, rows, size = [], 0, 0
        if writer is None:
            raise AssertionError("there is at least one file")
        if gathered:
            writer.write_table(pa.concat_tables(gathered), row_group_size=GROUP_ROWS)
    return total


def _compression(file: pq.ParquetFile) -> dict[str, Any]:
    """As the file is compressed; of zstd the level of the sink, which no file tells."""
    metadata = file.metadata
    has_data = metadata.num_row_groups and metadata.num_columns
    name = str(metadata.row_group(0).column(0).compression).lower() if has_data else "zstd"
    if name == "zstd":
        return {"compression": name, "compression_level": 1}
    return {"compression": "none" if name == "uncompressed" else name}


def _merge_arrow(location: Location, paths: Sequence[str], stream: BinaryIO) -> int:
    total = 0
    with ExitStack() as stack:
        writer: pa.ipc.RecordBatchFileWriter | None = None
        for path in paths:
            full = location.child(path)
            with closing(location.fs.open(full, "rb")) as source, naming_path(full):
                reader = pa.ipc.open_file(source)
                if writer is None:
                    schema = reader.schema
                    writer = stack.enter_context(pa.ipc.new_file(stream, schema))
                _check_columns(path, reader.schema, schema)
                for index in range(reader.num_record_batches):
                    batch = reader.get_batch(index)
                    writer.write_batch(batch)
                    total += batch.num_rows
    return total


def _merge_lines(location: Location, paths: Sequence[str], stream: BinaryIO) -> None:
    for path in paths:
        full = location.child(path)
        with closing(location.fs.open(full, "rb")) as source, naming_path(full):
            last = b"\n"
            for part in _parts(source):
                stream.write(part)
                last = part[-1:]
            if last != b"\n":
                stream.write(b"\n")


def _parts(source: Any) -> Iterator[bytes]:
    while part := source.read(COPIED_BYTES):
        yield part


def _check_columns(path: str, found: pa.Schema, expected: pa.Schema) -> None:
    if not found.equals(expected):
        raise DataError(f"{path!r} has other columns than the files that it is merged with: was it changed meanwhile?")


_COPIES: dict[str, Copy] = {"parquet": _merge_parquet, "arrow": _merge_arrow, "jsonl": _merge_lines}
_COLUMNS: dict[str, Callable[[Any], pa.Schema | None]] = {"parquet": _parquet_columns, "arrow": _arrow_columns}
