"""Reads Arrow IPC: the file format by record batches, the stream format from the beginning."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.ipc

from arroyo_formats.arrow.claims import ClaimError, check_claims
from arroyo_formats.conform import conform, plain_schema
from arroyo_formats.files import TO_THE_END, DamagedFileError, FileReader, is_damage, is_local
from arroyo_formats.plain_sizes import plain_slices

#: The first bytes of the file format; a stream begins otherwise.
FILE_MAGIC = b"ARROW1"

IpcReader: TypeAlias = pa.ipc.RecordBatchFileReader | pa.ipc.RecordBatchStreamReader


def read_schema(fs: Any, path: str) -> pa.Schema:
    """The plain schema of a file."""
    with _open(fs, path) as reader:
        return plain_schema(reader.schema)


def piece_bytes(fs: Any, path: str) -> list[int]:
    """An even share of the file's size for each record batch; a stream is one piece."""
    with _open(fs, path) as reader:
        parts = reader.num_record_batches if isinstance(reader, pa.ipc.RecordBatchFileReader) else 1
    return [int(fs.size(path)) // max(parts, 1)] * parts


class ArrowFileReader(FileReader):
    """Reads record batches; positions are rows from the start of the part."""

    def __init__(self, fs: Any, *, schema: pa.Schema, batch_rows: int) -> None:
        self._fs = fs
        self._schema = schema
        self._batch_rows = batch_rows

    def read(self, path: str, part: tuple[int, int], position: int) -> Iterator[tuple[pa.RecordBatch, int]]:
        before = 0
        try:
            with _open(self._fs, path, checks=True) as reader:
                for batch in _batches(reader, part):
                    # Bytes that are not what was written may pass for values until someone looks at them.
                    batch.validate(full=True)
                    inner = max(position - before, 0)
                    before += batch.num_rows
                    for rows in plain_slices(batch, self._batch_rows, start=inner):
                        position += rows.num_rows
                        yield conform(rows, self._schema, place=path), position
        except (pa.ArrowException, OSError) as error:
            raise _named(path, error) from error
        except ClaimError as error:
            raise DamagedFileError(path, str(error)) from error


def _named(path: str, error: Exception) -> Exception:
    """What to raise for an error of Arrow, which does not name the file."""
    return DamagedFileError(path, str(error)) if is_damage(error) else error


def _batches(reader: IpcReader, part: tuple[int, int]) -> Iterator[pa.RecordBatch]:
    if isinstance(reader, pa.ipc.RecordBatchStreamReader):
        yield from reader
        return
    start, stop = part
    for index in range(start, reader.num_record_batches if stop == TO_THE_END else stop):
        yield reader.get_batch(index)


@contextmanager
def _open(fs: Any, path: str, *, checks: bool = False) -> Iterator[IpcReader]:
    """With `checks`, what batches say that they unpack to is looked at first; of local files, where that is quick."""
    with pa.memory_map(path) if is_local(fs) else pa.PythonFile(fs.open(path, "rb"), mode="r") as source:
        try:
            magic = source.read(len(FILE_MAGIC))
            source.seek(0)
            if checks and is_local(fs):
                check_claims(memoryview(source.read_buffer()), is_file=magic == FILE_MAGIC)
                source.seek(0)
            reader = pa.ipc.open_file(source) if magic == FILE_MAGIC else pa.ipc.open_stream(source)
        except (pa.ArrowException, OSError) as error:
            raise _named(path, error) from error
        with reader:
            yield reader
