"""Operators as methods: what an installed operator takes in Python, by its schema."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from arroyo_core.api import OperatorConstructor
from arroyo_core.api.config_defaults import default_text
from arroyo_core.errors import PipelineError, PluginError
from arroyo_core.pipeline.builder.declaration import NODE_KEYS
from arroyo_core.pipeline.builder.places import CallSite
from arroyo_core.pipeline.comments import read_comments
from arroyo_core.pipeline.field_options import has_option, writable_fields
from arroyo_core.pipeline.wellknown import WELL_KNOWN
from arroyo_core.plugin import installed_plugins
from arroyo_core.proto import options_pb2


@dataclass(frozen=True, slots=True)
class Call:
    """The arguments of a call as a config, and which of them gave each field: a keyword, or a position."""

    config: Mapping[str, object]
    arguments: Mapping[str, str | int]


@dataclass(frozen=True)
class OperatorWords:
    """How one operator is written in Python."""

    name: str
    constructor: OperatorConstructor[Any]

    @property
    def is_source(self) -> bool:
        return self.constructor.inputs == (0, 0)

    @cached_property
    def fields(self) -> Mapping[str, FieldDescriptor]:
        """By the names of their arguments; none for a config that is any mapping."""
        descriptor = cast(Descriptor, self.constructor.config_type.DESCRIPTOR)
        if descriptor.full_name in WELL_KNOWN:
            return {}
        return {argument_name(field.name): field for field in writable_fields(descriptor).values()}

    def call(self, positional: Sequence[object], given: Mapping[str, object], *, skipped: int, site: CallSite) -> Call:
        """`skipped` arguments stand before the positional ones. Raises `PipelineError` for those that fit no field."""
        names = list(self.fields)
        if len(positional) > len(names):
            most = f"at most {len(names)} arguments without a name" if names else "arguments by name only"
            raise PipelineError(
                f"{self.name} takes {most}, not {len(positional)}",
                at=site.at,
                value=positional[len(names)],
                allowed=tuple(names),
            )
        arguments: dict[str, str | int] = {}
        config: dict[str, object] = {}
        for place, (name, value) in enumerate(zip(names, positional, strict=False)):
            config[self.fields[name].name] = value
            arguments[self.fields[name].name] = skipped + place
        for name, value in given.items():
            field = self.fields[name].name if name in self.fields else name
            if field in config:
                raise PipelineError(f"{self.name} is given {field!r} twice", at=site.at, value=field)
            config[field] = value
            arguments[field] = name
        return Call(self.constructor.config_of(config), arguments)

    @property
    def signature(self) -> inspect.Signature:
        """For editors; what is allowed is checked when the pipeline is planned."""
        kinds = inspect.Parameter
        most = 1 if self.constructor.inputs is None else self.constructor.inputs[1]
        inputs = [kinds("inputs", kinds.VAR_POSITIONAL, annotation="Stream")] if most is None or most > 1 else []
        kind = kinds.KEYWORD_ONLY if inputs else kinds.POSITIONAL_OR_KEYWORD
        fields = [
            kinds(name, kind, annotation="Any", default=kinds.empty if is_required(field) else _Shown(field))
            for name, field in self.fields.items()
        ]
        # Required ones first, where Python wants it so; they are given by name then.
        ordered = [each.default is kinds.empty for each in fields]
        if kind is kinds.POSITIONAL_OR_KEYWORD and ordered != sorted(ordered, reverse=True):
            first = ordered.index(False)
            late = [each.replace(kind=kinds.KEYWORD_ONLY) for each in fields[first:]]
            fields = [*fields[:first], *late]
        own = [kinds(name, kinds.KEYWORD_ONLY, annotation="Any", default=None) for name in NODE_KEYS]
        more = [kinds("config", kinds.VAR_KEYWORD, annotation="Any")]
        return inspect.Signature([*inputs, *fields, *own, *more], return_annotation="Stream")

    @property
    def doc(self) -> str:
        """The comment of its config, and of each field."""
        config_type = self.constructor.config_type
        try:
            comments = read_comments(config_type)
        except PluginError:
            comments = {}
        own = inspect.cleandoc(type(self.constructor).__doc__ or "")
        lines = [comments.get(config_type.DESCRIPTOR.full_name) or own, ""]
        for name, field in self.fields.items():
            default = default_text(field)
            remark = "required" if is_required(field) else f"default {default}" if default is not None else "optional"
            text = " ".join(comments.get(field.full_name, "").split())
            lines.append(f"    {name} ({remark}): {text}".rstrip(": "))
        return "\n".join(lines).rstrip()


def argument_name(field: str) -> str:
    """The name of an argument: with `_` behind it where Python or a node has the name for something else."""
    return f"{field}_" if keyword.iskeyword(field) or field in (*NODE_KEYS, "self") else field


def is_required(field: FieldDescriptor) -> bool:
    return has_option(field, options_pb2.required)


class _Shown:
    """A default as a signature shows it: `...` for what is not set."""

    def __init__(self, field: FieldDescriptor) -> None:
        self._text = default_text(field)

    def __repr__(self) -> str:
        return "..." if self._text is None else self._text


def words_of(name: str) -> OperatorWords:
    """How an operator is written; raises `PluginError` where it cannot be used."""
    return OperatorWords(name, installed_plugins().constructor(name))


def find_words(name: str) -> OperatorWords | None:
    """The same; None where it cannot be used, which planning says in full."""
    try:
        return words_of(name)
    except PluginError:
        return None


def operators_of(prefix: str | None = None) -> dict[str, tuple[str, ...]]:
    """Operators that read streams by the last part of their names, of one plugin or of all."""
    found: dict[str, list[str]] = {}
    for name, constructor in sorted(installed_plugins().registry.constructors.items()):
        plugin, _, last = name.partition(".")
        if constructor.inputs != (0, 0) and prefix in (None, plugin):
            found.setdefault(last, []).append(name)
    return {last: tuple(names) for last, names in found.items()}


def plugin_names() -> tuple[str, ...]:
    """The plugins that have operators, as operators are named after them."""
    return tuple(sorted({name.partition(".")[0] for name in installed_plugins().registry.constructors}))
