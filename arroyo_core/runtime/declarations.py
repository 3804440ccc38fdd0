"""What the operators of a plan declare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from arroyo_core.api import Origin
from arroyo_core.pipeline.plan import Plan, Setting
from arroyo_core.plugin import PluginSet
from arroyo_core.proto.state_pb2 import TableConfig
from arroyo_core.runtime.assembly import construct
from arroyo_core.runtime.pinned_udfs import plugins_for
from arroyo_core.runtime.tables import declared_tables


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredOperator:
    """A node of a plan, the tables its operator declares, and the settings that these depend on."""

    id: str
    operator: str
    origin: Origin
    is_source: bool = False
    is_committing: bool = False
    #: The id that the node had before.
    was: str | None = None
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
        declared.append(
            DeclaredOperator(
                id=node.id,
                operator=node.operator,
                origin=node.origin,
                is_source=constructed.is_source,
                is_committing=inner.is_committing(),
                was=node.was,
                inputs=plan.written_inputs(node.id),
                tables=declared_tables(inner, node.input_schemas),
                settings=node.settings,
            )
        )
    return declared
