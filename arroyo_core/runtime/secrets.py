"""Keeps what secret fields of a node's config hold out of errors and warnings of its tasks."""

from __future__ import annotations

from functools import cached_property

from arroyo_core.pipeline.plan import Node
from arroyo_core.pipeline.redaction import Redaction
from arroyo_core.pipeline.secret_fields import hide_values
from arroyo_core.plugin import PluginSet


class NodeSecrets:
    """Reads the config only when there is a text to look at: a task that works well has none."""

    def __init__(self, node: Node, plugins: PluginSet) -> None:
        self._node = node
        self._plugins = plugins

    def redact(self, text: str) -> str:
        """`text` without the values of the secret fields."""
        return self._redaction.redact(text)

    @cached_property
    def _redaction(self) -> Redaction:
        redaction = Redaction()
        hide_values(self._plugins.constructor(self._node.operator).config_type.FromString(self._node.config), redaction)
        return redaction
