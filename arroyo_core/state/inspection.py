"""Looking into checkpoints: what there is, what tables hold, what changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from arroyo_core.errors import StateError
from arroyo_core.ids import FULL_KEY_RANGE, KeyRange, TaskInfo
from arroyo_core.proto.state_pb2 import CheckpointMetadata, OperatorCheckpointMetadata, StateFile
from arroyo_core.state import paths
from arroyo_core.state.backend import ParquetBackend
from arroyo_core.state.compaction import merge_files
from arroyo_core.state.config import time_zones
from arroyo_core.state.failures import DamagedStateError, MissingFileError, NoRegisteredTableError
from arroyo_core.state.file_access import FileAccess
from arroyo_core.state.merge import operators_by_id, staged_bytes, table_files
from arroyo_core.state.protocol import JobFacts
from arroyo_core.state.storage import StorageProvider
from arroyo_core.state.table import Table, TableOpening
from arroyo_core.state.table_types import table_class, type_name

#: The column of a diff that says what happened to a row: `+` it came, `-` it went.
CHANGE_COLUMN = "_change"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSummary:
    """One published epoch; `error` says why its metadata cannot be read."""

    epoch: int
    is_committed: bool
    needs_commit: bool = False
    #: Empty for one of before there were incarnations.
    incarnation: str = ""
    generation: int = 0
    operators: int = 0
    files: int = 0
    bytes_written: int = 0
    bytes_live: int = 0
    finish_time_us: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSummary:
    """One table of a checkpoint."""

    operator: str
    table: str
    kind: str
    files: int
    rows: int
    bytes_live: int
    version: int


def finished_epoch(backend: ParquetBackend, facts: JobFacts) -> int | None:
    """The newest epoch, if it is the job's last and nobody has begun anything since."""
    if not facts.published:
        return None
    epoch = max(facts.published)
    try:
        latest = backend.load_checkpoint_metadata(backend.job_id, epoch)
    except (DamagedStateError, MissingFileError):
        return None
    return epoch if latest.is_final and latest.generation == max(facts.generations) else None


def find_jobs(storage: StorageProvider) -> list[str]:
    """Every job with a published checkpoint below the URL."""
    return _jobs_with(
        storage, lambda _, rest: rest.startswith("checkpoints/") and rest.endswith("/" + paths.CHECKPOINT_FILE)
    )


def find_started_jobs(storage: StorageProvider) -> list[str]:
    """Every job below the URL that a driver has started, though it may not have come to a checkpoint yet."""
    return _jobs_with(
        storage, lambda job, rest: paths.generation_of(job, f"{paths.job_folder(job)}/{rest}") is not None
    )


def _jobs_with(storage: StorageProvider, is_sign: Callable[[str, str], bool]) -> list[str]:
    found = (file.path.partition("/") for file in storage.list_root())
    return sorted({job for folder, _, rest in found if is_sign(job := paths.decode_id(folder), rest)})


def summarize_checkpoints(backend: ParquetBackend) -> Iterator[CheckpointSummary]:
    """Every published epoch, oldest first, also those that cannot be read."""
    for epoch in backend.list_epochs():
        is_committed = backend.is_committed(epoch)
        try:
            metadata = backend.load_checkpoint_metadata(backend.job_id, epoch)
        except DamagedStateError as error:
            yield CheckpointSummary(epoch=epoch, is_committed=is_committed, error=str(error))
            continue
        live = {file.path: file.size_bytes for _, _, file in _files(metadata)}
        yield CheckpointSummary(
            epoch=epoch,
            is_committed=is_committed,
            needs_commit=metadata.needs_commit,
            incarnation=metadata.incarnation,
            generation=metadata.generation,
            operators=len(metadata.operators),
            files=len(live),
            bytes_written=sum(operator.bytes for operator in metadata.operators),
            bytes_live=sum(live.values()) + _staged_bytes(metadata),
            finish_time_us=metadata.finish_time_us,
        )


def _staged_bytes(metadata: CheckpointMetadata) -> int:
    tables = (table for operator in metadata.operators for table in operator.table_checkpoint_metadata.values())
    return sum(staged_bytes(table) for table in tables)


def summarize_tables(metadata: CheckpointMetadata) -> list[TableSummary]:
    """Every table of a checkpoint, by operator and name; rows count deletes and superseded rows too."""
    found = []
    for operator in metadata.operators:
        for name, table in sorted(operator.table_checkpoint_metadata.items()):
            files = {file.path: file for file in table_files(table)}
            found.append(
                TableSummary(
                    operator=operator.operator_metadata.operator_id,
                    table=name,
                    kind=type_name(table.table_type).lower(),
                    files=len(files),
                    rows=sum(file.rows for file in files.values()),
                    bytes_live=sum(file.size_bytes for file in files.values()) + staged_bytes(table),
                    version=operator.table_configs[name].state_version,
                )
            )
    return found


def read_table(
    storage: StorageProvider,
    metadata: CheckpointMetadata,
    operator_id: str,
    table: str,
    *,
    within: KeyRange = FULL_KEY_RANGE,
) -> pa.Table:
    """All that a table holds at a checkpoint: a global one as JSON text of `key` and `value`, any other as its rows.

    With `within`, the rows whose key hashes are in that range; files without any are not read.
    """
    operator = operators_by_id(metadata.operators).get(operator_id)
    if operator is None:
        known = ", ".join(sorted(operators_by_id(metadata.operators))) or "none"
        raise NoRegisteredTableError(f"epoch {metadata.epoch} has no operator {operator_id!r} (it has: {known})")
    if table not in operator.table_checkpoint_metadata:
        known = ", ".join(sorted(operator.table_checkpoint_metadata)) or "none"
        raise NoRegisteredTableError(f"operator {operator_id!r} has no table {table!r} (it has: {known})")
    opened = _open(storage, metadata.job_id, operator, table, within)
    rows = opened.to_people(merge_files(opened, opened.carried, is_oldest=True))
    for zone in time_zones(rows.schema):
        try:
            pa.lib.string_to_tzinfo(zone)
        except LookupError as error:
            raise StateError(f"table {table!r} has times of {zone!r}, a zone that is not known here") from error
    return rows


def diff_tables(before: pa.Table, after: pa.Table) -> pa.Table:
    """Rows that went (`-`) and rows that came (`+`), with a `_change` column first."""
    old, new = _counted(before), _counted(after)
    gone = [row for key, (row, count) in old.items() for _ in range(count - new.get(key, (row, 0))[1])]
    came = [row for key, (row, count) in new.items() for _ in range(count - old.get(key, (row, 0))[1])]
    rows = pa.Table.from_pylist([*gone, *came], schema=after.schema)
    changes = pa.array(["-"] * len(gone) + ["+"] * len(came), pa.string())
    return rows.add_column(0, CHANGE_COLUMN, changes)


def _files(metadata: CheckpointMetadata) -> Iterator[tuple[str, str, StateFile]]:
    for operator in metadata.operators:
        for name, table in operator.table_checkpoint_metadata.items():
            for file in table_files(table):
                yield operator.operator_metadata.operator_id, name, file


def _open(
    storage: StorageProvider, job_id: str, operator: OperatorCheckpointMetadata, name: str, within: KeyRange
) -> Table[Any]:
    identity = operator.operator_metadata
    task = TaskInfo(
        job_id=job_id, operator_id=identity.operator_id, operator_name="inspection", task_index=0, parallelism=1
    )
    config, found = operator.table_configs[name], operator.table_checkpoint_metadata[name]
    return table_class(found.table_type)(
        TableOpening(
            name=name,
            config=config,
            access=FileAccess(storage=storage, task_info=task, is_sealed=True),
            files=_narrowed(table_files(found), within),
            written=config,
            # It is read as it was written, whoever owns its keys.
            written_parallelism=task.parallelism,
        )
    )


def _narrowed(files: Iterable[StateFile], within: KeyRange) -> list[StateFile]:
    """What of the files belongs to the range, as if no more were live."""
    narrowed = []
    for file in files:
        start, end = max(file.live_key_start, within.start), min(file.live_key_end, within.end)
        if start <= end and within.overlaps(file.min_key_hash, file.max_key_hash):
            part = StateFile()
            part.CopyFrom(file)
            part.live_key_start, part.live_key_end = start, end
            narrowed.append(part)
    return narrowed


def _counted(table: pa.Table) -> dict[str, tuple[dict[str, object], int]]:
    rows = table.to_pylist()
    counts = Counter(repr(row) for row in rows)
    return {repr(row): (row, counts[repr(row)]) for row in rows}
