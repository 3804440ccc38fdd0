"""What is said of metadata that is too large."""

from __future__ import annotations

from arroyo_core.errors import StateError
from arroyo_core.proto.state_pb2 import CheckpointMetadata
from arroyo_core.state.limits import METADATA_BYTES
from arroyo_core.state.merge import table_files


def check_metadata_size(metadata: CheckpointMetadata) -> None:
    """Raise `StateError`, with what takes the most, before a checkpoint's metadata is too large for a message."""
    size_bytes = metadata.ByteSize()
    max_bytes = METADATA_BYTES.value
    if size_bytes <= max_bytes:
        return
    tables = {
        f"{operator.operator_metadata.operator_id}.{name}": (table.ByteSize(), len(table_files(table)))
        for operator in metadata.operators
        for name, table in operator.table_checkpoint_metadata.items()
    }
    largest = sorted(tables.items(), key=lambda item: item[1], reverse=True)[:3]
    told = ", ".join(f"{name} ({size} bytes, {files} files)" for name, (size, files) in largest)
    raise StateError(
        f"job {metadata.job_id!r}: the metadata of epoch {metadata.epoch} has {size_bytes} bytes, and at most "
        f"{max_bytes} are allowed ({METADATA_BYTES.variable}). The largest tables are {told}. Every table of every "
        "subtask has files of its own: lower the parallelism of these operators, or keep fewer tables"
    )
