"""The canonical layout of a pipeline file, with its comments."""

from arroyo_core.graph.layout.formatting import LayoutError, format_text

__all__ = ["LayoutError", "format_text"]
