"""What a job stored of itself, for its report: epochs, checkpoints, its graph, and what went wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from arroyo_core.cli.job_states import JobState, read_job_state
from arroyo_core.proto.state_pb2 import CheckpointMetadata
from arroyo_core.runtime.event_log import read_epoch
from arroyo_core.runtime.former_ids import nodes_of
from arroyo_core.runtime.results import operator_state_bytes
from arroyo_core.state import ParquetBackend, paths
from arroyo_core.state.failures import DamagedStateError, MissingFileError, OversizedFileError
from arroyo_core.state.inspection import CheckpointSummary, summarize_checkpoints
from arroyo_core.state.limits import TOLD_FILE_BYTES

#: Of a job that keeps more, the newest are reported.
MOST_EPOCHS = 1_000
#: Of events that went wrong.
MOST_ERRORS = 200
#: Events of a driver's log that say why something was given up.
_FAILURES = {"Failed": "failed", "EpochDiscarded": "epoch discarded"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """A kept epoch: what its log says, if that is still whole, and its checkpoint."""

    checkpoint: CheckpointSummary
    #: None where there is no whole log.
    numbers: Mapping[str, Any] | None = None
    #: Of the checkpoint: all it refers to, by operator.
    state_bytes: Mapping[str, int] | None = None

    @property
    def reused_bytes(self) -> int:
        """What its checkpoint took over from those before it."""
        return max(0, self.checkpoint.bytes_live - self.checkpoint.bytes_written)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedNode:
    id: str
    operator: str
    inputs: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Something that went wrong before an epoch."""

    epoch: int
    what: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    state: JobState
    #: Oldest first.
    epochs: Sequence[Epoch]
    nodes: Sequence[ReportedNode]
    troubles: Sequence[Trouble]


def read_run(backend: ParquetBackend, *, now_us: int) -> RunFacts:
    """Reads only. Epochs that go while it reads are left out."""
    summaries = list(summarize_checkpoints(backend))[-MOST_EPOCHS:]
    epochs: list[Epoch] = []
    troubles: list[Trouble] = []
    latest: CheckpointMetadata | None = None
    for summary in summaries:
        try:
            metadata = None if summary.error else backend.load_checkpoint_metadata(backend.job_id, summary.epoch)
        except (MissingFileError, DamagedStateError):
            continue
        if metadata is None:
            epochs.append(Epoch(checkpoint=summary))
            continue
        latest = metadata
        epochs.append(
            Epoch(
                checkpoint=summary,
                numbers=read_epoch(backend.storage, metadata),
                state_bytes=operator_state_bytes(metadata),
            )
        )
        troubles += _troubles(backend, metadata)
    return RunFacts(
        state=read_job_state(backend, now_us=now_us),
        epochs=epochs,
        nodes=[] if latest is None else _nodes(latest),
        troubles=troubles[-MOST_ERRORS:],
    )


def _nodes(checkpoint: CheckpointMetadata) -> list[ReportedNode]:
    """The graph as the driver recorded it; an input may name one output of a node, `node.output`."""
    recorded = nodes_of(checkpoint).nodes
    ids = {node.operator_id for node in recorded}
    return [
        ReportedNode(
            id=node.operator_id,
            operator=node.operator,
            inputs=[name if name in ids else name.rpartition(".")[0] for name in node.inputs],
        )
        for node in recorded
    ]


def _troubles(backend: ParquetBackend, checkpoint: CheckpointMetadata) -> list[Trouble]:
    path = paths.event_log(checkpoint.job_id, checkpoint.epoch, checkpoint.generation)
    try:
        data = backend.storage.read(path, max_bytes=TOLD_FILE_BYTES)
        lines = [json.loads(line) for line in data.splitlines()]
    except (MissingFileError, OversizedFileError, ValueError, RecursionError):
        # Logs are written without waiting for the disk.
        return []
    return [
        Trouble(epoch=checkpoint.epoch, what=_FAILURES[line["event"]], reason=str(line.get("reason", "")))
        for line in lines
        if isinstance(line, dict) and line.get("event") in _FAILURES
    ]
