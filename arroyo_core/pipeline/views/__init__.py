"""A planned pipeline for people and tools: text and JSON. No value of the environment is shown."""

from arroyo_core.pipeline.views.json import render_json
from arroyo_core.pipeline.views.text import render_text

__all__ = ["render_json", "render_text"]
