"""From the reports of subtasks to the metadata of operators and checkpoints; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from arroyo_core.errors import StateError
from arroyo_core.proto.state_pb2 import (
    OperatorCheckpointMetadata,
    OperatorMetadata,
    StagedFile,
    StateFile,
    SubtaskCheckpointMetadata,
    TableCheckpointMetadata,
    TableSubtaskCheckpointMetadata,
)
from arroyo_core.state.table_types import table_class, uses_two_phase_commit


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
    """The data files of a table, oldest first."""
    return table_class(table.table_type).files(table)


def staged_files(table: TableCheckpointMetadata) -> Sequence[StagedFile]:
    """The files that hold commit data of a table."""
    return list(table_class(table.table_type).staged(table).files.values())


def needed_files(table: TableCheckpointMetadata) -> list[StateFile | StagedFile]:
    """Every file that a table of a checkpoint refers to."""
    return table_class(table.table_type).files_to_keep(table)


def staged_bytes(table: TableCheckpointMetadata) -> int:
    """How much commit data a table has, in the metadata and in files."""
    staged = table_class(table.table_type).staged(table)
    return sum(map(len, staged.inline.values())) + sum(file.size_bytes for file in staged.files.values())


def clear_staged(table: TableCheckpointMetadata) -> None:
    """Forget the commit data of a table."""
    table_class(table.table_type).clear_staged(table)


def operators_by_id(operators: Sequence[OperatorCheckpointMetadata]) -> Mapping[str, OperatorCheckpointMetadata]:
    return {operator.operator_metadata.operator_id: operator for operator in operators}


def _merge_table(parts: Sequence[TableSubtaskCheckpointMetadata]) -> TableCheckpointMetadata:
    return table_class(parts[0].table_type).merge_checkpoint_metadata(parts)
