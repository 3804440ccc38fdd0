"""The page of a distribution's user functions."""

from __future__ import annotations

import inspect
from typing import Any

from arroyo_core.plugin import PluginSet
from arroyo_devtools.reference.markdown import fenced

_PROMPT = ">>> "


def function_page(distribution: str, plugins: PluginSet) -> str:
    registry = plugins.registry
    names = sorted(name for name in registry.udfs if registry.udf_origin(name).distribution == distribution)
    parts = [
        f"# {distribution}",
        f"User functions for expressions and aggregates: `pip install {distribution}`, and every pipeline can call "
        "them. A `?` marks arguments that may be null.",
    ]
    for name in names:
        function: Any = registry.udfs[name]
        parts += [f"## {name}", fenced(getattr(function, "signature", name))]
        parts += _doc(inspect.cleandoc(getattr(function, "doc", "") or ""))
    return "\n\n".join(parts)


def _doc(doc: str) -> list[str]:
    """The paragraphs of a docstring; those that are examples as code."""
    blocks = [block for block in doc.split("\n\n") if block.strip()]
    return [fenced(block, "python") if block.lstrip().startswith(_PROMPT) else block for block in blocks]
