"""From YAML to a typed plan of chains and waves."""

from typing import TYPE_CHECKING, Any

from arroyo_core.pipeline.plan import Chain, CheckpointSpec, Edge, Node, Plan, Routing, UdfKind, UdfPin

if TYPE_CHECKING:
    from arroyo_core.pipeline.planner import PlannedPipeline, plan_file, plan_pipeline, plan_text

__all__ = [
    "Chain",
    "CheckpointSpec",
    "Edge",
    "Node",
    "Plan",
    "PlannedPipeline",
    "Routing",
    "UdfKind",
    "UdfPin",
    "plan_file",
    "plan_pipeline",
    "plan_text",
]


def __getattr__(name: str) -> Any:
    # Executors unpickle plans in every worker process: the planner and YAML stay out of their way.
    if name in __all__:
        from arroyo_core.pipeline import planner

        return getattr(planner, name)
    raise AttributeError(name)
