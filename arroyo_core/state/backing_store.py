"""`BackingStore`: what a place for checkpoints is to drivers and to tables."""

from __future__ import annotations

from abc import ABC, abstractmethod

from arroyo_core.proto.state_pb2 import CheckpointMetadata, OperatorCheckpointMetadata


class BackingStore(ABC):
    """What any state backend offers to drivers and table managers."""

    @abstractmethod
    def prepare_checkpoint_load(self, metadata: CheckpointMetadata) -> None:
        """Check, before any subtask starts, that every file of a checkpoint is there with its size."""

    @abstractmethod
    def load_checkpoint_metadata(self, job_id: str, epoch: int) -> CheckpointMetadata:
        """The metadata of a published epoch."""

    @abstractmethod
    def load_operator_metadata(self, job_id: str, operator_id: str, epoch: int) -> OperatorCheckpointMetadata | None:
        """One operator's part of a published epoch; None if the checkpoint has no such operator."""

    @abstractmethod
    def write_operator_checkpoint_metadata(self, metadata: OperatorCheckpointMetadata) -> None:
        """Keep what one subtask of an operator wrote; `metadata.subtask_index` says which."""

    @abstractmethod
    def write_checkpoint_metadata(self, metadata: CheckpointMetadata) -> None:
        """Publish an epoch: the one act that makes it exist."""

    @abstractmethod
    def cleanup_checkpoint(self, metadata: CheckpointMetadata, old_min_epoch: int, new_min_epoch: int) -> None:
        """Delete epochs before `new_min_epoch` and whatever only they, or nobody, refer to."""

    @classmethod
    @abstractmethod
    def name(cls) -> str: ...
