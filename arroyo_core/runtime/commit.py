"""The second phase of a commit: after an epoch is accepted, its effects become visible."""

from __future__ import annotations

from collections.abc import Callable

from arroyo_core.api import Clock, CommitToken
from arroyo_core.pipeline.plan import Plan
from arroyo_core.plugin import PluginSet
from arroyo_core.proto.state_pb2 import CheckpointMetadata
from arroyo_core.runtime.assembly import construct, task_info
from arroyo_core.runtime.boundary import Boundary
from arroyo_core.runtime.context import RuntimeContext
from arroyo_core.runtime.metrics import OperatorMetrics, Stopwatch
from arroyo_core.runtime.pinned_udfs import plugins_for
from arroyo_core.runtime.secrets import NodeSecrets
from arroyo_core.runtime.tables import TableOpener
from arroyo_core.state import ParquetBackend, commit_data


def commit_epoch(
    plan: Plan,
    plugins: PluginSet,
    checkpoint: CheckpointMetadata,
    backend: ParquetBackend,
    clock: Clock,
    *,
    begin: Callable[[str], None],
) -> dict[str, OperatorMetrics]:
    """Call `handle_commit` once for each committing operator, with what its subtasks staged; what each counted, by id.

    Runs on the driver, in the order of the plan. Idempotent, as `handle_commit` is. Raises `FencedError` before the
    first operator for which another driver has the job by now. `begin` is told whose turn it is.
    """
    # What was staged is committed under the incarnation it was staged by, and by the driver that does it now.
    token = CommitToken(checkpoint.incarnation, backend.generation, checkpoint.epoch)
    opener = TableOpener(backend.storage.url, {}, incarnation=token.incarnation)
    said: dict[str, OperatorMetrics] = {}
    plugins = plugins_for(plan, plugins)
    staged = {item.operator_metadata.operator_id: item for item in checkpoint.operators if item.needs_commit}
    for node in plan.nodes.values():
        if node.id not in staged:
            continue
        operator = construct(node, plugins).inner
        if operator.is_committing():
            begin(node.id)
            task = task_info(plan, node, 0)
            metrics = said[node.id] = OperatorMetrics()
            secrets = NodeSecrets(node, plugins)
            ctx = RuntimeContext(
                task_info=task,
                table_manager=opener.open(operator, task, node.input_schemas).manager,
                clock=clock,
                input_schemas=node.input_schemas,
                output_schema=node.output_schema,
                token=token,
                metrics=metrics,
                redact=secrets.redact,
            )
            data = commit_data(staged[node.id], backend.storage)
            # Nothing between this and the commit: a driver may be paused anywhere.
            backend.check_commit(token.epoch)
            with Boundary(task, token.epoch, metrics, Stopwatch(), secrets.redact):
                operator.handle_commit(token.epoch, data, ctx)
    return said
