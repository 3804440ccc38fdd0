"""Whether checkpoints are whole: every file is there, is what was written, opens, and fits its table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from arroyo_core.errors import StateError
from arroyo_core.proto.state_pb2 import CheckpointMetadata, StagedFile, StateFile, TableConfig
from arroyo_core.state import ParquetBackend
from arroyo_core.state.column_rules import column_path, compare_columns
from arroyo_core.state.config import RESERVED_COLUMNS
from arroyo_core.state.files import FORMAT, FORMAT_KEY, VERSION_KEY, verify_file
from arroyo_core.state.markers import check_marker
from arroyo_core.state.merge import staged_files, table_files
from arroyo_core.state.staged import read_staged
from arroyo_core.state.table_types import table_class


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What verifying one checkpoint found. `metadata` is None where it cannot be read."""

    epoch: int
    files: int = 0
    bytes_read: int = 0
    problems: tuple[str, ...] = ()
    metadata: CheckpointMetadata | None = None

    @property
    def is_whole(self) -> bool:
        return not self.problems


class Verifier:
    """Verifies checkpoints of one job; a file that several of them need is read once."""

    def __init__(self, backend: ParquetBackend) -> None:
        self._backend = backend
        #: What is wrong with a file, by path and checksum; empty for one that is whole.
        self._known: dict[tuple[str, bytes], tuple[str, ...]] = {}

    def verify(self, epoch: int) -> Verdict:
        """Read everything of a published epoch."""
        try:
            metadata = self._backend.load_checkpoint_metadata(self._backend.job_id, epoch)
        except StateError as error:
            return Verdict(epoch=epoch, problems=(str(error),))
        problems: list[str] = []
        sizes: dict[str, int] = {}
        for operator_id, name, config, file in _files(metadata):
            if file.path not in sizes:
                sizes[file.path] = file.size_bytes
                found = self._check(file, config)
                problems += [f"{problem}; table {name!r} of operator {operator_id!r} needs it" for problem in found]
        for staged in _staged(metadata):
            sizes[staged.path] = staged.size_bytes
            try:
                read_staged(self._backend.storage, staged)
            except StateError as error:
                problems.append(str(error))
        try:
            check_marker(self._backend.storage, self._backend.seals, metadata)
        except StateError as error:
            problems.append(str(error))
        return Verdict(
            epoch=epoch,
            files=len(sizes),
            bytes_read=sum(sizes.values()),
            problems=tuple(problems),
            metadata=metadata,
        )

    def verify_all(self) -> Iterator[Verdict]:
        """Every published epoch, oldest first."""
        for epoch in self._backend.list_epochs():
            yield self.verify(epoch)

    def _check(self, file: StateFile, config: TableConfig) -> tuple[str, ...]:
        key = (file.path, file.checksum)
        if key not in self._known:
            self._known[key] = tuple(self._problems(file, config))
        return self._known[key]

    def _problems(self, file: StateFile, config: TableConfig) -> Iterator[str]:
        storage = self._backend.storage
        name = f"{storage.url}/{file.path}"
        try:
            data = verify_file(storage, file)
        except StateError as error:
            yield str(error)
            return
        try:
            reader = pq.ParquetFile(pa.BufferReader(data))
        except pa.ArrowException as error:
            yield f"{name} is not a Parquet file: {error}"
            return
        yield from (f"{name} {problem}" for problem in _misfits(file, config, reader))


def _files(metadata: CheckpointMetadata) -> Iterator[tuple[str, str, TableConfig, StateFile]]:
    for operator in metadata.operators:
        for name, table in sorted(operator.table_checkpoint_metadata.items()):
            for file in table_files(table):
                yield operator.operator_metadata.operator_id, name, operator.table_configs[name], file


def _staged(metadata: CheckpointMetadata) -> Iterator[StagedFile]:
    for operator in metadata.operators:
        for table in operator.table_checkpoint_metadata.values():
            yield from staged_files(table)


def _misfits(file: StateFile, config: TableConfig, reader: pq.ParquetFile) -> Iterator[str]:
    """Where a file that opens is not what the metadata says of it."""
    facts = reader.metadata.metadata or {}
    if facts.get(FORMAT_KEY) != FORMAT:
        yield f"is of state format {facts.get(FORMAT_KEY, b'?').decode()}, not {FORMAT.decode()}"
    if facts.get(VERSION_KEY) != str(file.state_version).encode():
        yield f"holds version {facts.get(VERSION_KEY, b'?').decode()} of its values, not {file.state_version}"
    if reader.metadata.num_rows != file.rows:
        yield f"has {reader.metadata.num_rows} rows, not {file.rows}"
    table = table_class(config.table_type)
    may_differ = table.may_differ(config)
    wanted = {field.name: field.type for field in table.file_schema(config)}
    found = {field.name: field.type for field in reader.schema_arrow}
    for column, kind in wanted.items():
        source = file.column_names.get(column_path("", column), column)
        if source not in found:
            if not may_differ or column in RESERVED_COLUMNS:
                yield f"has no column {column!r}"
        elif found[source] != kind and not (may_differ and _can_become(found[source], column, kind, file)):
            yield f"has a column {source!r} of type {found[source]}, not {kind}"
    extra = sorted(set(found) - set(wanted))
    if extra and not may_differ:
        yield f"has a column {extra[0]!r} that its table has not"


def _can_become(found: pa.DataType, column: str, wanted: pa.DataType, file: StateFile) -> bool:
    """Whether values of one type are values of the other, but for what the file is known to have no values for."""
    schemas = [pa.schema([pa.field(column, kind)]) for kind in (found, wanted)]
    retyped = compare_columns(*schemas, written=None, declared=None).retyped
    return all(change.path in file.column_names for change in retyped)
