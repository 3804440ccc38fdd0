"""The canonical layout of a pipeline file, with its comments."""

from arroyo_devtools.formatting.formatting import LayoutError, format_text

__all__ = ["LayoutError", "format_text"]
