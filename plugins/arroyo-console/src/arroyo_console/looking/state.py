"""Checkpoints and tables of state of a job."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import pyarrow as pa

from arroyo_console.errors import ConflictError, UnknownError
from arroyo_console.store.records import PipelineRecord
from arroyo_console.supervision.asking import backend_of
from arroyo_console.values import Checkpoint, Column, OperatorCheckpoint, TableInfo, TableRows
from arroyo_core.api import END_OF_TIME_US
from arroyo_core.cli.tables import plain_value
from arroyo_core.errors import StateError
from arroyo_core.proto.state_pb2 import CheckpointMetadata, OperatorCheckpointMetadata
from arroyo_core.runtime.event_log import read_epoch
from arroyo_core.state import ParquetBackend
from arroyo_core.state.inspection import CHANGE_COLUMN, diff_tables, read_table, summarize_tables
from arroyo_core.state.merge import table_files

#: Tables with more rows are not read by the server; `arroyo state cat` reads them.
MAX_TABLE_ROWS = 500_000


def opened(pipeline: PipelineRecord) -> ParquetBackend:
    backend = backend_of(pipeline)
    if backend is None:
        raise ConflictError("the job has not been started yet: it has no state")
    return backend


def list_checkpoints(backend: ParquetBackend, *, limit: int) -> Iterator[Checkpoint]:
    """Newest first, without what each operator wrote."""
    for epoch in islice(sorted(backend.list_epochs(), reverse=True), limit):
        try:
            yield read_checkpoint(backend, epoch, has_operators=False)
        except StateError as error:
            yield Checkpoint(epoch=epoch, error=str(error))


def read_checkpoint(backend: ParquetBackend, epoch: int, *, has_operators: bool = True) -> Checkpoint:
    metadata = load(backend, epoch)
    operators = tuple(_operator(each, epoch) for each in metadata.operators)
    log = read_epoch(backend.storage, metadata)
    return Checkpoint(
        epoch=epoch,
        finished_us=metadata.finish_time_us or None,
        duration_s=log["duration_s"] if log is not None else None,
        checkpoint_s=max((each.duration_s for each in operators), default=0.0),
        is_committed=backend.is_committed(epoch) or not metadata.needs_commit,
        is_final=metadata.is_final,
        generation=metadata.generation,
        bytes_written=sum(each.bytes_written for each in operators),
        bytes_reused=sum(each.bytes_reused for each in operators),
        files=sum(each.files_written + each.files_reused for each in operators),
        operators=operators if has_operators else (),
    )


def _operator(operator: OperatorCheckpointMetadata, epoch: int) -> OperatorCheckpoint:
    identity = operator.operator_metadata
    tables = operator.table_checkpoint_metadata
    files = {file.path: file for table in tables.values() for file in table_files(table)}
    # A file that was merged in this epoch was written in it, whatever the epoch of its rows.
    folder = f"/checkpoints/{epoch}/"
    written = [file for file in files.values() if folder in f"/{file.path}"]
    reused = [file for file in files.values() if folder not in f"/{file.path}"]
    has_watermark = identity.HasField("min_watermark_us") and identity.min_watermark_us < END_OF_TIME_US
    return OperatorCheckpoint(
        node=identity.operator_id,
        parallelism=identity.parallelism,
        bytes_written=operator.bytes,
        bytes_reused=sum(file.size_bytes for file in reused),
        files_written=len(written),
        files_reused=len(reused),
        duration_s=max(0.0, (operator.finish_time_us - operator.start_time_us) / 1e6),
        watermark_us=identity.min_watermark_us if has_watermark else None,
        tables=tuple(sorted(tables)),
    )


def load(backend: ParquetBackend, epoch: int | None) -> CheckpointMetadata:
    """The metadata of an epoch, by default of the newest; raises `UnknownError` where there is none."""
    epochs = backend.list_epochs()
    if not epochs:
        raise UnknownError("the job has no checkpoint yet")
    if epoch is not None and epoch not in epochs:
        raise UnknownError(
            f"there is no checkpoint of epoch {epoch}", where="epoch", allowed=[str(each) for each in epochs]
        )
    return backend.load_checkpoint_metadata(backend.job_id, epochs[-1] if epoch is None else epoch)


def list_tables(metadata: CheckpointMetadata) -> tuple[TableInfo, ...]:
    return tuple(
        TableInfo(
            node=each.operator,
            table=each.table,
            kind=each.kind,
            files=each.files,
            rows=each.rows,
            bytes=each.bytes_live,
            version=each.version,
        )
        for each in summarize_tables(metadata)
    )


def rows_of(
    backend: ParquetBackend, node: str, table: str, *, epoch: int | None, key: str | None, limit: int
) -> TableRows:
    metadata = load(backend, epoch)
    found = _read(backend, metadata, node, table)
    return _shown(found, node, table, epoch=metadata.epoch, before=None, key=key, limit=limit)


def difference(
    backend: ParquetBackend,
    node: str,
    table: str,
    *,
    before: int | None,
    epoch: int | None,
    key: str | None,
    limit: int,
) -> TableRows:
    after = load(backend, epoch)
    if before is None:
        earlier = [each for each in backend.list_epochs() if each < after.epoch]
        if not earlier:
            raise ConflictError(f"epoch {after.epoch} is the oldest checkpoint there is: nothing to compare it with")
        before = earlier[-1]
    tables = [_read(backend, metadata, node, table) for metadata in (load(backend, before), after)]
    return _shown(diff_tables(*tables), node, table, epoch=after.epoch, before=before, key=key, limit=limit)


def _read(backend: ParquetBackend, metadata: CheckpointMetadata, node: str, table: str) -> pa.Table:
    known = list_tables(metadata)
    found = next((each for each in known if (each.node, each.table) == (node, table)), None)
    if found is None:
        names = [f"{each.node}.{each.table}" for each in known]
        raise UnknownError(f"epoch {metadata.epoch} has no table {node}.{table}", where="table", allowed=names)
    if found.rows > MAX_TABLE_ROWS:
        raise ConflictError(
            f"table {node}.{table} has {found.rows:,} rows, and the server reads at most {MAX_TABLE_ROWS:,}: "
            "use `arroyo state cat`"
        )
    return read_table(backend.storage, metadata, node, table)


def _shown(
    found: pa.Table, node: str, table: str, *, epoch: int, before: int | None, key: str | None, limit: int
) -> TableRows:
    rows: list[dict[str, Any]] = []
    total = 0
    for row in _plain_rows(found):
        if key is None or _has_key(row, key):
            total += 1
            if len(rows) < limit:
                rows.append(row)
    columns = tuple(Column(name=each.name, type=str(each.type), is_nullable=each.nullable) for each in found.schema)
    return TableRows(
        node=node, table=table, epoch=epoch, before_epoch=before, columns=columns, rows=tuple(rows), total=total
    )


def _plain_rows(found: pa.Table) -> Iterator[dict[str, Any]]:
    for batch in found.to_batches():
        for row in batch.to_pylist():
            yield {name: plain_value(value) for name, value in row.items()}


def _has_key(row: dict[str, Any], key: str) -> bool:
    """Whether a value of the row is the key, as people write it."""
    return any(str(value) == key for name, value in row.items() if name != CHANGE_COLUMN)
