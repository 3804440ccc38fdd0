"""From the statements of a script to nodes, over DataFusion's plans of its queries."""

from __future__ import annotations

from arroyo_core.pipeline.environment import Environment
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.plugin import PluginSet
from arroyo_sql.planned import PlannedQuery
from arroyo_sql.script import Script

__all__ = ["plan_script"]


def plan_script(
    script: Script,
    *,
    plugins: PluginSet,
    environment: Environment | None = None,
    mistakes: Mistakes,
) -> PlannedQuery | None:
    """The nodes of a script; None where there are mistakes, all of which are recorded.

    Reads schemas through the plugins, and runs nothing.
    """
    # DataFusion takes long to import, and scripts that are not SQL need none of it.
    from arroyo_sql.planner.planning import ScriptPlanner

    return ScriptPlanner(script, plugins, environment or Environment({}), mistakes).plan()
