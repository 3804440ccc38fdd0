"""What each installed operator does, takes, keeps and gives."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from arroyo_core.api import OperatorConstructor, Origin
from arroyo_core.pipeline.comments import read_comments
from arroyo_core.pipeline.wellknown import WELL_KNOWN
from arroyo_core.plugin import PluginSet
from arroyo_devtools.schema.field_docs import FieldDoc, describe_fields
from arroyo_devtools.schema.offers import Offers
from arroyo_devtools.schema.prose import OperatorText, read_operator_text


class Kind(StrEnum):
    SOURCE = "source"
    OPERATOR = "operator"
    SINK = "sink"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorDoc:
    """`config_type` and `comments` are for those who describe the config in a form of their own."""

    name: str
    origin: Origin
    kind: Kind
    #: The least and the greatest number of inputs; None where its constructor does not say.
    inputs: tuple[int, int | None] | None
    text: OperatorText
    #: Empty for an operator without settings, and for one that takes any mapping.
    fields: tuple[FieldDoc, ...]
    #: Whether the config is any mapping: a message of protobuf's own, such as Struct.
    takes_anything: bool
    config_type: type[Message]
    comments: Mapping[str, str]


def describe_operators(plugins: PluginSet) -> dict[str, OperatorDoc]:
    """All operators of the plugins, by name, in order."""
    offers = Offers(plugins)
    return {name: _describe(name, plugins, offers) for name in sorted(plugins.registry.constructors)}


def describe_operator(name: str, plugins: PluginSet) -> OperatorDoc:
    """One operator; raises `PluginError` saying why there is none of this name.

    The text is the comment of its config message, else the docstring of its constructor.
    """
    return _describe(name, plugins, Offers(plugins))


def _describe(name: str, plugins: PluginSet, offers: Offers) -> OperatorDoc:
    constructor = plugins.constructor(name)
    config_type = constructor.config_type
    descriptor = cast(Descriptor, config_type.DESCRIPTOR)
    comments = read_comments(config_type)
    takes_anything = descriptor.full_name in WELL_KNOWN
    # An inherited docstring is about constructors, not about this operator.
    own_docstring = inspect.cleandoc(type(constructor).__doc__ or "")
    return OperatorDoc(
        name=name,
        origin=plugins.origin(name),
        kind=_kind(constructor),
        inputs=constructor.inputs,
        text=read_operator_text(comments.get(descriptor.full_name) or own_docstring),
        fields=() if takes_anything else describe_fields(descriptor, comments, offers),
        takes_anything=takes_anything,
        config_type=config_type,
        comments=comments,
    )


def _kind(constructor: OperatorConstructor[Any]) -> Kind:
    if constructor.inputs == (0, 0):
        return Kind.SOURCE
    return Kind.SINK if constructor.is_sink else Kind.OPERATOR
