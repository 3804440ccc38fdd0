"""From the reports of subtasks to the metadata of operators and checkpoints; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from arroyo_core.errors import StateError
from arroyo_core.proto.state_pb2 import (
    ExpiringKeyedTimeTableCheckpointMetadata,
    GlobalKeyedTableTaskCheckpointMetadata,
    OperatorCheckpointMetadata,
    OperatorMetadata,
    StagedFile,
    StateFile,
    SubtaskCheckpointMetadata,
    TableCheckpointMetadata,
    TableSubtaskCheckpointMetadata,
    TableType,
)
from arroyo_core.state.config import uses_two_phase_commit
from arroyo_core.state.references import merge_references


def merge_operator_metadata(subtasks: Sequence[SubtaskCheckpointMetadata]) -> OperatorCheckpointMetadata:
    """One operator's part of a checkpoint, from the reports of all its subtasks, in any order.

    Raises `StateError` unless every subtask of one operator and epoch reported exactly once.
    """
    if not subtasks:
        raise StateError("no subtask reported a checkpoint")
    first = subtasks[0]
    identity = (first.job_id, first.operator_id, first.epoch, first.parallelism)
    for subtask in subtasks:
        if (subtask.job_id, subtask.operator_id, subtask.epoch, subtask.parallelism) != identity:
            raise StateError(
                f"operator {first.operator_id!r}, epoch {first.epoch}: the report of operator {subtask.operator_id!r}, "
                f"epoch {subtask.epoch}, parallelism {subtask.parallelism} does not belong to it"
            )
    found = sorted(subtask.subtask_index for subtask in subtasks)
    if found != list(range(first.parallelism)):
        raise StateError(
            f"operator {first.operator_id!r}, epoch {first.epoch}: subtasks {found} reported, "
            f"expected each of 0 to {first.parallelism - 1} once"
        )
    return join_subtasks(subtasks)


def join_subtasks(subtasks: Sequence[SubtaskCheckpointMetadata]) -> OperatorCheckpointMetadata:
    """As `merge_operator_metadata`, without asking whether the subtasks are all there."""
    first = subtasks[0]
    watermarks = [subtask.watermark_us for subtask in subtasks if subtask.HasField("watermark_us")]
    is_defined = len(watermarks) == len(subtasks)
    names = sorted({name for subtask in subtasks for name in subtask.table_metadata})
    return OperatorCheckpointMetadata(
        operator_metadata=OperatorMetadata(
            job_id=first.job_id,
            operator_id=first.operator_id,
            epoch=first.epoch,
            min_watermark_us=min(watermarks) if is_defined else None,
            max_watermark_us=max(watermarks) if is_defined else None,
            parallelism=first.parallelism,
        ),
        start_time_us=min(subtask.start_time_us for subtask in subtasks),
        finish_time_us=max(subtask.finish_time_us for subtask in subtasks),
        table_checkpoint_metadata={
            name: _merge_table([s.table_metadata[name] for s in subtasks if name in s.table_metadata]) for name in names
        },
        table_configs=dict(first.table_configs),
        needs_commit=any(uses_two_phase_commit(config) for config in first.table_configs.values()),
        bytes=sum(subtask.bytes for subtask in subtasks),
    )


def table_files(table: TableCheckpointMetadata) -> Sequence[StateFile]:
    """The file references of a table of either kind, oldest first."""
    if table.table_type == TableType.GLOBAL_KEY_VALUE:
        return table.global_keyed.files
    return table.expiring_keyed_time.files


def staged_files(table: TableCheckpointMetadata) -> Sequence[StagedFile]:
    """The files that hold commit data of a table."""
    return list(table.global_keyed.commit_files_by_subtask.values())


def needed_files(table: TableCheckpointMetadata) -> list[StateFile | StagedFile]:
    """Every file that a table of a checkpoint refers to."""
    return [*table_files(table), *staged_files(table)]


def staged_bytes(table: TableCheckpointMetadata) -> int:
    """How much commit data a table has, in the metadata and in files."""
    inline = sum(len(data) for data in table.global_keyed.commit_data_by_subtask.values())
    return inline + sum(file.size_bytes for file in staged_files(table))


def clear_staged(table: TableCheckpointMetadata) -> None:
    """Forget the commit data of a table."""
    if table.table_type == TableType.GLOBAL_KEY_VALUE:
        table.global_keyed.commit_data_by_subtask.clear()
        table.global_keyed.commit_files_by_subtask.clear()


def operators_by_id(operators: Sequence[OperatorCheckpointMetadata]) -> Mapping[str, OperatorCheckpointMetadata]:
    return {operator.operator_metadata.operator_id: operator for operator in operators}


def _merge_table(parts: Sequence[TableSubtaskCheckpointMetadata]) -> TableCheckpointMetadata:
    kind = parts[0].table_type
    if kind == TableType.GLOBAL_KEY_VALUE:
        files = merge_references(file for part in parts for file in part.global_keyed.files)
        staged = {
            part.subtask_index: part.global_keyed.commit_data
            for part in parts
            if part.global_keyed.HasField("commit_data")
        }
        in_files = {
            part.subtask_index: part.global_keyed.commit_file
            for part in parts
            if part.global_keyed.HasField("commit_file")
        }
        merged = GlobalKeyedTableTaskCheckpointMetadata(
            files=files, commit_data_by_subtask=staged, commit_files_by_subtask=in_files
        )
        return TableCheckpointMetadata(table_type=kind, global_keyed=merged)
    files = merge_references(file for part in parts for file in part.expiring_keyed_time.files)
    return TableCheckpointMetadata(
        table_type=kind, expiring_keyed_time=ExpiringKeyedTimeTableCheckpointMetadata(files=files)
    )
