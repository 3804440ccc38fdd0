"""A planned pipeline for people and tools: text, Mermaid, DOT, JSON. No value of the environment is shown."""

from collections.abc import Callable, Mapping

from arroyo_core.pipeline.planner import PlannedPipeline
from arroyo_core.pipeline.views.dot import render_dot
from arroyo_core.pipeline.views.json import render_json
from arroyo_core.pipeline.views.mermaid import render_mermaid
from arroyo_core.pipeline.views.text import render_text

#: Every format, by its name on the command line.
VIEWS: Mapping[str, Callable[[PlannedPipeline], str]] = {
    "text": render_text,
    "mermaid": render_mermaid,
    "dot": render_dot,
    "json": render_json,
}

__all__ = ["VIEWS", "render_dot", "render_json", "render_mermaid", "render_text"]
