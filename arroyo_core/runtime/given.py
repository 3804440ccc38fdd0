"""Sources whose rows come with the run: which nodes they are, and what they have been given."""

from __future__ import annotations

import difflib
from collections.abc import Collection

from arroyo_core.api import GivenPosition
from arroyo_core.errors import SetupError
from arroyo_core.pipeline.plan import Plan
from arroyo_core.plugin import PluginSet
from arroyo_core.runtime.assembly import construct, task_info
from arroyo_core.runtime.pinned_udfs import plugins_for
from arroyo_core.runtime.request import EpochRequest
from arroyo_core.runtime.tables import TableOpener

#: The key of the position in the table of such a source.
POSITION = "position"


def given_nodes(plan: Plan, plugins: PluginSet) -> list[str]:
    """The sources of a plan whose rows come with the run, in the order of the plan."""
    found = []
    plugins = plugins_for(plan, plugins)
    for node in plan.nodes.values():
        if not plan.inputs_of(node.id):
            source = construct(node, plugins).source
            if source is not None and source.given_table() is not None:
                found.append(node.id)
    return found


def check_given(plan: Plan, plugins: PluginSet, given: Collection[str]) -> None:
    """Raises `SetupError` for a source that gets no rows, and for rows that no source takes."""
    wanted = given_nodes(plan, plugins)
    for name in given:
        if name not in wanted:
            near = difflib.get_close_matches(name, wanted, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            takers = f"those that do: {', '.join(wanted)}" if wanted else "none of its nodes does"
            what = "takes no rows of the run" if name in plan.nodes else "is not a node of the pipeline"
            raise SetupError(f"inputs: {name!r} {what} ({takers}){hint}")
    missing = [name for name in wanted if name not in given]
    if missing:
        named = ", ".join(f"{name!r}: df" for name in missing)
        raise SetupError(
            f"the rows of {', '.join(map(repr, missing))} come with the run, and there are none: run the pipeline from "
            f"Python, with a DataFrame for each: Pipeline.from_yaml(...).run(spark, inputs={{{named}}})"
        )


def read_position(plan: Plan, plugins: PluginSet, node_id: str, request: EpochRequest) -> GivenPosition | None:
    """What the node had been given at the end of the epoch before; None where it had nothing."""
    node = plan.nodes[node_id]
    source = construct(node, plugins_for(plan, plugins)).source
    table = source.given_table() if source is not None else None
    if source is None or table is None or not request.checkpoints.get(node_id):
        return None
    opener = TableOpener(
        request.storage_url, request.checkpoints, incarnation=request.incarnation, is_sealed=request.is_sealed
    )
    tables = opener.open(source, task_info(plan, node, 0), node.input_schemas)
    stored = tables.manager.get_global_keyed_state(table).get(POSITION)
    return None if stored is None else GivenPosition(str(stored[0]), int(stored[1]))
