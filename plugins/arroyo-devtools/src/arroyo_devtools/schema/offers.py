"""What configs choose by name among all that distributions add by a hook, such as formats."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from arroyo_core.api import Origin
from arroyo_core.pipeline.comments import read_comments
from arroyo_core.plugin import PluginSet
from arroyo_devtools.schema.prose import OperatorText, read_operator_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One of them: an object with a `name` and, for its settings, a `settings_type`."""

    name: str
    origin: Origin
    text: OperatorText
    settings_type: type[Message]
    comments: Mapping[str, str]

    @property
    def descriptor(self) -> Descriptor:
        return cast(Descriptor, self.settings_type.DESCRIPTOR)


class Offers:
    """All of them, by the name of the hook."""

    def __init__(self, plugins: PluginSet) -> None:
        self._plugins = plugins
        self._known: dict[str, Sequence[Offer]] = {}

    def of(self, hook: str) -> Sequence[Offer]:
        """What this hook gives, sorted by name."""
        if hook not in self._known:
            found = [_describe(item, origin) for item, origin in self._plugins.hooks.collect(hook, object)]
            self._known[hook] = sorted(found, key=lambda offer: offer.name)
        return self._known[hook]

    def lookups(self) -> Sequence[Offer]:
        """The lookups that are registered, sorted by name; their settings are their configs."""
        registry = self._plugins.registry
        return [
            _offer(name, registry.lookup_origin(name), registry.lookup(name), registry.lookup(name).config_type)
            for name in sorted(registry.lookups)
        ]


def _describe(item: Any, origin: Origin) -> Offer:
    return _offer(item.name, origin, item, item.settings_type)


def _offer(name: str, origin: Origin, item: object, settings_type: type[Message]) -> Offer:
    """The text is the comment of the settings, else the docstring of the object's own class."""
    comments = read_comments(settings_type)
    full_name = cast(Descriptor, settings_type.DESCRIPTOR).full_name
    text = comments.get(full_name) or inspect.cleandoc(type(item).__doc__ or "")
    return Offer(
        name=name, origin=origin, text=read_operator_text(text), settings_type=settings_type, comments=comments
    )
