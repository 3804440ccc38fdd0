"""What sinks stage for the second phase of a commit: in the checkpoint's metadata, or in files where it is large.

Metadata is one protobuf message, which goes through the driver and cannot have more than 2 GiB in all.
"""

from __future__ import annotations

import hashlib

from arroyo_core.errors import StateError
from arroyo_core.proto.state_pb2 import OperatorCheckpointMetadata, StagedFile
from arroyo_core.state.failures import DamagedStateError, MissingFileError
from arroyo_core.state.paths import check_reference
from arroyo_core.state.storage import StorageProvider
from arroyo_core.state.table_types import table_class, uses_two_phase_commit


def commit_data(
    operator: OperatorCheckpointMetadata, storage: StorageProvider | None = None
) -> dict[str, dict[int, bytes]]:
    """`{table: {subtask: bytes}}` as `handle_commit` takes it; every committing table is there.

    Reads staged files from `storage`, which only checkpoints without any do not need. Raises `DamagedStateError` if one
    is missing or not what was written.
    """
    job_id = operator.operator_metadata.job_id
    found: dict[str, dict[int, bytes]] = {}
    for name, table in operator.table_checkpoint_metadata.items():
        if uses_two_phase_commit(operator.table_configs[name]):
            staged = table_class(table.table_type).staged(table)
            found[name] = dict(staged.inline)
            for subtask, file in staged.files.items():
                if storage is None:
                    raise StateError(f"table {name!r} has staged {file.path}: give the storage to read it from")
                check_reference(job_id, file.path)
                found[name][subtask] = read_staged(storage, file)
    return found


def read_staged(storage: StorageProvider, file: StagedFile) -> bytes:
    """The content of a staged file; `DamagedStateError` unless it is exactly what was written."""
    try:
        data = storage.read(file.path, max_bytes=file.size_bytes)
    except MissingFileError as error:
        raise DamagedStateError(f"{storage.url}/{file.path}, staged for a commit, is missing") from error
    if len(data) != file.size_bytes:
        raise DamagedStateError(
            f"{storage.url}/{file.path}, staged for a commit, has {len(data)} bytes, {file.size_bytes} were written"
        )
    if hashlib.sha256(data).digest() != file.checksum:
        raise DamagedStateError(f"{storage.url}/{file.path}, staged for a commit, does not match its checksum")
    return data
