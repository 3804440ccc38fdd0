"""Drivers of one job over one storage."""

from __future__ import annotations

from arroyo_core.proto.state_pb2 import CheckpointMetadata
from arroyo_core.state import ParquetBackend, StorageProvider


def driver(storage: StorageProvider) -> ParquetBackend:
    """One that owns the job now."""
    backend = ParquetBackend(storage, "job")
    backend.claim_generation()
    return backend


def publish(backend: ParquetBackend, *epochs: int) -> CheckpointMetadata:
    """Checkpoints without tables; returns the last as it was published."""
    return [backend.publish(CheckpointMetadata(job_id="job", epoch=epoch)) for epoch in epochs][-1]
