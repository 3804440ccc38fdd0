"""What the operators of a plan declare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from arroyo_core.api import ArrowCollector, ArrowOperator, CommitToken, Origin, SystemClock, Watermark
from arroyo_core.graph.plan import Node, Plan, Setting
from arroyo_core.plugin import PluginSet
from arroyo_core.proto.state_pb2 import TableConfig
from arroyo_core.runtime.assembly import construct, task_info
from arroyo_core.runtime.context import RuntimeContext
from arroyo_core.runtime.metrics import OperatorMetrics
from arroyo_core.runtime.pinned_udfs import plugins_for
from arroyo_core.runtime.tables import TableOpener
from arroyo_core.state.config import is_undefined

#: A store for operators that are started only to learn the columns of their tables; nothing is written there.
_NOWHERE = "memory://arroyo-declarations"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredOperator:
    """A node of a plan, the tables its operator declares, and the settings that these depend on."""

    id: str
    operator: str
    origin: Origin
    is_source: bool = False
    is_committing: bool = False
    inputs: tuple[str, ...] = ()
    tables: Mapping[str, TableConfig] = field(default_factory=dict, repr=False)
    settings: Mapping[str, Setting] = field(default_factory=dict, repr=False)


def declare_operators(plan: Plan, plugins: PluginSet) -> list[DeclaredOperator]:
    """Make the plan's operators, and ask them for their tables."""
    declared = []
    plugins = plugins_for(plan, plugins)
    for node in plan.written_nodes():
        constructed = construct(node, plugins)
        inner = constructed.inner
        tables: Mapping[str, TableConfig] = inner.tables()
        if isinstance(inner, ArrowOperator) and any(is_undefined(config) for config in tables.values()):
            tables = _defined_tables(plan, node, inner)
        declared.append(
            DeclaredOperator(
                id=node.id,
                operator=node.operator,
                origin=node.origin,
                is_source=constructed.is_source,
                is_committing=inner.is_committing(),
                inputs=plan.written_inputs(node.id),
                tables=tables,
                settings=node.settings,
            )
        )
    return declared


class _Discarding(ArrowCollector):
    def collect(self, batch: pa.RecordBatch) -> None:
        return

    def broadcast_watermark(self, watermark: Watermark) -> None:
        return


def _defined_tables(plan: Plan, node: Node, operator: ArrowOperator) -> Mapping[str, TableConfig]:
    """The tables of an operator that gives their columns in `on_start`, which is called with empty tables.

    Where that fails the columns stay unknown: the failure comes again when the job runs, with the place it belongs to.
    """
    task = task_info(plan, node, 0)
    manager = TableOpener(_NOWHERE, {}).open(operator, task).manager
    ctx = RuntimeContext(
        task_info=task,
        table_manager=manager,
        clock=SystemClock(),
        input_schemas=node.input_schemas,
        output_schema=node.output_schema,
        token=CommitToken("", 0, 0),
        metrics=OperatorMetrics(),
    )
    try:
        operator.on_start(ctx)
        operator.on_close(None, ctx, _Discarding())
    except Exception:
        return operator.tables()
    return dict(manager.table_configs)
