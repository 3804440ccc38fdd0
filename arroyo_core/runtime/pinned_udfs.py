"""The plugins of a task, with the user functions that its plan pins."""

from __future__ import annotations

from arroyo_core.pipeline.plan import Plan
from arroyo_core.plugin import PluginSet


def plugins_for(plan: Plan, plugins: PluginSet) -> PluginSet:
    """The plugins with the functions of the plan's bundles, pickles and distributions; loaded once per process.

    Raises `PluginError` for functions that are not those of the plan, `StorageError` for an outage.
    """
    if not plan.udfs:
        return plugins
    # Not for every worker process: most pipelines have none.
    from arroyo_core.runtime.user_code import load_pinned

    return load_pinned(plan.udfs, plugins)
