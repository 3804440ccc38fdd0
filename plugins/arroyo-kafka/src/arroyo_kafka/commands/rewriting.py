"""Changes the state of one operator while its job does not run: a new checkpoint, never a file by hand."""

from __future__ import annotations

from collections.abc import Callable

from arroyo_core.api import CheckpointBarrier, StateTables, SystemClock, TaskInfo
from arroyo_core.errors import Domain, RetryHint, StateError
from arroyo_core.pipeline.plan import Plan
from arroyo_core.plugin import PluginSet
from arroyo_core.proto.state_pb2 import CheckpointMetadata, SubtaskCheckpointMetadata
from arroyo_core.runtime.assembly import construct
from arroyo_core.runtime.status import leave_stopped
from arroyo_core.runtime.tables import OperatorTables, TableOpener
from arroyo_core.state import ParquetBackend, ResolutionKind, merge_operator_metadata
from arroyo_core.state.offline import renumber_checkpoint

#: Given the tables of one subtask, and who it is.
Change = Callable[[StateTables, TaskInfo], None]


class RewriteError(StateError):
    """The state cannot be changed, or not now; the message says what can be done."""

    domain = Domain.USER
    retry = RetryHint.NO_RETRY


def look_at_state(plan: Plan, plugins: PluginSet, backend: ParquetBackend, node_id: str, look: Change) -> int:
    """Show `look` the tables of every subtask at the newest checkpoint; returns its epoch. Changes nothing."""
    checkpoint = _newest(backend)
    for tables, task in _open(plan, plugins, backend, checkpoint, node_id):
        look(tables.manager, task)
    return int(checkpoint.epoch)


def rewrite_state(plan: Plan, plugins: PluginSet, backend: ParquetBackend, node_id: str, change: Change) -> int:
    """Publish the newest checkpoint again, with what `change` makes of one operator's tables; returns its epoch.

    Claims the job first: a driver that runs all the same is fenced, and publishes nothing more. Raises `RewriteError`
    where the newest checkpoint is not committed, or the last one of its job.
    """
    backend.claim_generation()
    leave_stopped(backend)
    checkpoint = _newest(backend)
    if checkpoint.is_final:
        raise RewriteError(f"job {backend.job_id!r} has finished: nothing reads on from its last checkpoint")
    if backend.resolve_latest().kind is ResolutionKind.REPLAY_COMMIT:
        raise RewriteError(
            f"epoch {checkpoint.epoch} of job {backend.job_id!r} is not committed: its output would be lost. Run the "
            "job once more and stop it, then try again"
        )
    number = max(backend.read_facts().present) + 1
    barrier = CheckpointBarrier(
        epoch=number, min_epoch=checkpoint.min_epoch, timestamp_us=SystemClock().now_us(), then_stop=True
    )
    parts = []
    for tables, task in _open(plan, plugins, backend, checkpoint, node_id):
        change(tables.manager, task)
        parts.append(SubtaskCheckpointMetadata.FromString(tables.checkpoint(barrier)))
    changed = renumber_checkpoint(checkpoint, number)
    merged = merge_operator_metadata(parts)
    for operator in changed.operators:
        if operator.operator_metadata.operator_id == node_id:
            operator.table_checkpoint_metadata.clear()
            for name, table in merged.table_checkpoint_metadata.items():
                operator.table_checkpoint_metadata[name].CopyFrom(table)
            operator.bytes = merged.bytes
    backend.publish(changed)
    return number


def _newest(backend: ParquetBackend) -> CheckpointMetadata:
    checkpoint = backend.resolve_latest().checkpoint
    if checkpoint is None:
        raise RewriteError(f"job {backend.job_id!r} has no checkpoint yet")
    return checkpoint


def _open(
    plan: Plan, plugins: PluginSet, backend: ParquetBackend, checkpoint: CheckpointMetadata, node_id: str
) -> list[tuple[OperatorTables, TaskInfo]]:
    """The tables of every subtask that wrote them."""
    found = next((item for item in checkpoint.operators if item.operator_metadata.operator_id == node_id), None)
    if found is None:
        raise RewriteError(f"epoch {checkpoint.epoch} of job {backend.job_id!r} has no state of node {node_id!r}")
    node = plan.nodes[node_id]
    operator = construct(node, plugins).inner
    opener = TableOpener(
        backend.storage.url,
        {node_id: found.SerializeToString()},
        incarnation=checkpoint.incarnation,
        is_sealed=backend.seals.is_on,
    )
    tasks = [
        TaskInfo(
            job_id=plan.job_id,
            operator_id=node_id,
            operator_name=node.operator,
            task_index=subtask,
            parallelism=found.operator_metadata.parallelism,
        )
        for subtask in range(found.operator_metadata.parallelism)
    ]
    return [(opener.open(operator, task, node.input_schemas), task) for task in tasks]
