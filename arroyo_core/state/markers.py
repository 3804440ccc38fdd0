"""Committed markers: where one is, every sink has committed the epoch, and nobody commits it again."""

from __future__ import annotations

from arroyo_core.proto.state_pb2 import CheckpointMetadata, CommittedMarker
from arroyo_core.state import paths
from arroyo_core.state.failures import MissingFileError, SealError
from arroyo_core.state.limits import SMALL_FILE_BYTES
from arroyo_core.state.seals import Seals
from arroyo_core.state.storage import StorageProvider


def create_marker(storage: StorageProvider, seals: Seals, job_id: str, marker: CommittedMarker) -> None:
    """Create the marker of an epoch; a second one changes nothing."""
    path = paths.committed_marker(job_id, marker.epoch)
    storage.put_if_absent(path, seals.seal(marker, path))


def check_marker(storage: StorageProvider, seals: Seals, metadata: CheckpointMetadata) -> None:
    """Raise `SealError` if the marker of a checkpoint, where there is one, is not its own: its output would be lost.

    Without keys it is enough that there is one.
    """
    if not seals.is_on or not metadata.needs_commit:
        return
    path = paths.committed_marker(metadata.job_id, metadata.epoch)
    name = f"{storage.url}/{path}"
    try:
        data = storage.read(path, max_bytes=SMALL_FILE_BYTES)
        marker = seals.unseal(data, CommittedMarker, path=path, name=name)
    except MissingFileError:
        return
    if (marker.epoch, marker.attempt_id) != (metadata.epoch, metadata.attempt_id):
        raise SealError(f"{name} is the marker of another checkpoint than that of epoch {metadata.epoch}")
