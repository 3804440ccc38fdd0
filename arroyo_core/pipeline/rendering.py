"""A document as YAML text that means the same when it is read again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml
from yaml.events import ScalarEvent
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.resolver import Resolver

from arroyo_core.pipeline.document import Entry, Scalar, YamlList, YamlMap, YamlValue, resolve_plain
from arroyo_core.pipeline.text import split_lines

#: Values that are no longer than this stand on one line, in brackets.
_LINE = 100
_STRING = "tag:yaml.org,2002:str"
_resolver: Any = Resolver()


def render_document(root: YamlValue) -> str:
    """The YAML of a document: one that reads the environment still does, and holds none of its values.

    Parameters have been put in where they are used, so what declares them is left out.
    """
    if isinstance(root, YamlMap):
        root = YamlMap(
            at=root.at, entries=tuple(entry for entry in root.entries if entry.key != "parameters"), size=root.size
        )
    node = _node(root, is_top=True)
    return yaml.serialize(node, Dumper=_Dumper, allow_unicode=True, width=10_000)


class _Dumper(yaml.SafeDumper):
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        # Items of a list are indented, as `arroyo fmt` has them.
        return super().increase_indent(flow, False)

    def choose_scalar_style(self) -> str:
        # Expressions have quotes in them, which would all be doubled.
        style = super().choose_scalar_style()
        return '"' if style == "'" and isinstance(self.event, ScalarEvent) and "'" in self.event.value else style


def _node(value: YamlValue, *, is_top: bool = False) -> Node:
    is_flow = not is_top and _fits(value)
    match value:
        case Scalar():
            return _scalar(value)
        case YamlList():
            # Nodes are blocks of lines, one below the other.
            return SequenceNode("tag:yaml.org,2002:seq", [_node(item) for item in value.items], flow_style=is_flow)
        case YamlMap():
            pairs = [(_key(entry.key), _node(entry.value, is_top=entry.key == "nodes")) for entry in value.entries]
            return MappingNode("tag:yaml.org,2002:map", pairs, flow_style=is_flow)


def _scalar(value: Scalar) -> ScalarNode:
    if value.is_plain:
        return ScalarNode(_resolver.resolve(ScalarNode, value.written, (True, False)), value.written)
    return _text(value.written)


def _key(text: str) -> ScalarNode:
    """A key, without quotes also where other readers of YAML take it for a boolean: `on` is a field of joins."""
    if isinstance(resolve_plain(text), str) and text.isidentifier():
        return ScalarNode(_resolver.resolve(ScalarNode, text, (True, False)), text)
    return _text(text)


def _text(text: str) -> ScalarNode:
    """A string, in quotes where it would mean something else without."""
    is_ambiguous = not isinstance(resolve_plain(text), str) or text == "<<" or len(split_lines(text)) > 1
    return ScalarNode(_STRING, text, style='"' if is_ambiguous else None)


def _fits(value: YamlValue) -> bool:
    """Whether a value can stand on one line: inside of brackets a reference had to be in quotes, and be text."""
    return isinstance(value, Scalar) or (
        _depth(value) <= 3 and _length(value) <= _LINE and not any("${" in text for text in _texts(value))
    )


def _depth(value: YamlValue) -> int:
    return 1 + max((_depth(item) for item in _items(value)), default=0)


def _length(value: YamlValue) -> int:
    keys = sum(len(entry.key) + 2 for entry in _entries(value))
    return (
        2
        + keys
        + sum(_length(item) + 2 for item in _items(value))
        + (len(value.written) if isinstance(value, Scalar) else 0)
    )


def _texts(value: YamlValue) -> Iterable[str]:
    if isinstance(value, Scalar):
        yield value.written
    for item in _items(value):
        yield from _texts(item)


def _entries(value: YamlValue) -> tuple[Entry, ...]:
    return tuple(value.entries) if isinstance(value, YamlMap) else ()


def _items(value: YamlValue) -> tuple[YamlValue, ...]:
    match value:
        case YamlList():
            return tuple(value.items)
        case YamlMap():
            return tuple(entry.value for entry in value.entries)
    return ()
