"""The second phase of a commit: after an epoch is accepted, its effects become visible."""

from __future__ import annotations

from collections.abc import Mapping

from arroyo_core.api import ArrowOperator, Clock, SourceOperator
from arroyo_core.graph.plan import Node, Plan
from arroyo_core.plugin import PluginSet
from arroyo_core.proto.state_pb2 import OperatorCheckpointMetadata
from arroyo_core.runtime.assembly import construct, task_info
from arroyo_core.runtime.boundary import Boundary
from arroyo_core.runtime.context import RuntimeContext
from arroyo_core.runtime.metrics import OperatorMetrics, Stopwatch
from arroyo_core.runtime.request import EpochRequest
from arroyo_core.runtime.tables import TableOpener
from arroyo_core.state import commit_data


def commit_epoch(
    plan: Plan,
    plugins: PluginSet,
    request: EpochRequest,
    checkpoints: Mapping[str, OperatorCheckpointMetadata],
    clock: Clock,
) -> None:
    """Call `handle_commit` once for each committing operator, with what its subtasks staged.

    Runs on the driver, in the order of the plan. Idempotent, as `handle_commit` is.
    """
    for node in plan.nodes.values():
        if node.id in checkpoints:
            data = commit_data(checkpoints[node.id])
            operator = construct(node, plugins).inner
            if data and operator.is_committing():
                _commit(plan, node, operator, request, data, clock)


def _commit(
    plan: Plan,
    node: Node,
    operator: ArrowOperator | SourceOperator,
    request: EpochRequest,
    data: Mapping[str, Mapping[int, bytes]],
    clock: Clock,
) -> None:
    task = task_info(plan, node, 0)
    metrics = OperatorMetrics()
    ctx = RuntimeContext(
        task_info=task,
        table_manager=TableOpener(request.storage_url, {}).open(operator, task).manager,
        clock=clock,
        input_schemas=node.input_schemas,
        output_schema=node.output_schema,
        epoch=request.epoch,
        metrics=metrics,
    )
    with Boundary(task, request.epoch, metrics, Stopwatch()):
        operator.handle_commit(request.epoch, data, ctx)
