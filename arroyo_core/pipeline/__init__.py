"""From YAML to a typed plan of chains and waves."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from arroyo_core.pipeline.plan import Chain, CheckpointSpec, Edge, Node, Plan, Routing, UdfKind, UdfPin

if TYPE_CHECKING:
    from arroyo_core.pipeline.languages import Language
    from arroyo_core.pipeline.planner import PlannedPipeline, plan_file, plan_pipeline, plan_text
    from arroyo_core.pipeline.sections import Section

__all__ = [
    "Chain",
    "CheckpointSpec",
    "Edge",
    "Language",
    "Node",
    "Plan",
    "PlannedPipeline",
    "Routing",
    "Section",
    "UdfKind",
    "UdfPin",
    "plan_file",
    "plan_pipeline",
    "plan_text",
]


#: Executors unpickle plans in every worker process: the planner and YAML stay out of their way.
_LATER = {
    "Language": "languages",
    "PlannedPipeline": "planner",
    "Section": "sections",
    "plan_file": "planner",
    "plan_pipeline": "planner",
    "plan_text": "planner",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    raise AttributeError(name)
