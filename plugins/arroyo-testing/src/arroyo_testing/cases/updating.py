"""Writes what came into the file of a test, where something else was expected; all else stays as it is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from arroyo_core.errors import ArroyoError, Domain
from arroyo_testing.cases.comparison import Difference, Kind
from arroyo_testing.cases.rendering import row_yaml

#: A list of rows that is written in [ ] stays so while it fits a line.
_MAX_WIDTH = 120


class CannotUpdateError(ArroyoError):
    """An expectation is written in a way that cannot be replaced: by an alias, or in another file."""

    domain = Domain.USER


@dataclass(frozen=True, slots=True)
class _Edit:
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class _Place:
    """A value in the text, the key before it, and whether it is inside { } or [ ]."""

    key: Node
    value: Node
    is_in_flow: bool


def update_text(text: str, differences: Iterable[Difference], *, file: str) -> str:
    """The text with the rows that came in the place of those that were expected.

    Rows that were right keep their words and the comments before them.
    """
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    edits = [_edit(text, root, difference, file) for difference in differences]
    for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def _edit(text: str, root: Node | None, difference: Difference, file: str) -> _Edit:
    expected = difference.expected
    place = _locate(root, expected.path)
    if place is None or expected.at.file != file or _is_alias(place):
        raise CannotUpdateError(
            f"{expected.at}: what is expected of {expected.outlet} cannot be updated: "
            "it is an alias, or stands in another file"
        )
    if expected.count is not None:
        return _Edit(_start(place.value), _end(text, place.value), str(len(difference.found)))
    assert isinstance(place.value, SequenceNode)
    if not difference.found:
        return _to_nothing(text, place)
    if place.value.flow_style:
        return _in_flow(text, place, difference)
    return _in_block(text, place.value, difference)


def _to_nothing(text: str, place: _Place) -> _Edit:
    if isinstance(place.value, SequenceNode) and place.value.flow_style:
        return _Edit(_start(place.value), _end(text, place.value), "[]")
    colon = text.index(":", _end(text, place.key)) + 1
    between = text[colon : _start(place.value)].rstrip(" ")
    comment = between.rstrip() if "#" in between else ""
    return _Edit(colon, _end(text, place.value), f" []{comment}")


def _in_flow(text: str, place: _Place, difference: Difference) -> _Edit:
    rows = [row_yaml(row, difference.names, difference.types) for row in _new_rows(difference)]
    joined = f"[{', '.join(rows)}]"
    start = _start(place.value)
    width = start - (text.rfind("\n", 0, start) + 1) + len(joined)
    if place.is_in_flow or (width <= _MAX_WIDTH and place.value.value):
        return _Edit(start, _end(text, place.value), joined)
    # Too long for a line: a list of lines, under its key.
    indent = " " * (place.key.start_mark.column + 2)
    lines = "".join(f"\n{indent}- {row}" for row in rows)
    start = len(text[:start].rstrip(" "))
    return _Edit(start, _end(text, place.value), lines)


def _in_block(text: str, value: SequenceNode, difference: Difference) -> _Edit:
    start = _start(value)
    indent = " " * value.start_mark.column
    pieces = []
    for place, row in _sources(difference):
        if place is None:
            pieces.append(f"\n{indent}- {row}")
            continue
        item = value.value[place]
        # What stands before an item belongs to it: comments, and how far it is from the one before.
        before = _line_end(text, value.value[place - 1]) if place else start
        lead = ("" if place else f"\n{indent}") + text[before : _start(item)]
        pieces.append(lead + (row or text[_start(item) : _line_end(text, item)]))
    joined = "".join(pieces).lstrip("\n")
    return _Edit(start, _line_end(text, value), joined.removeprefix(indent))


def _new_rows(difference: Difference) -> Sequence[tuple[object, ...]]:
    return [line.found if line.found is not None else () for line in difference.lines if line.kind is not Kind.MISSING]


def _sources(difference: Difference) -> list[tuple[int | None, str | None]]:
    """For each new row its place in the old list, if it takes one, and its text, if that is another one."""
    found: list[tuple[int | None, str | None]] = []
    place = 0
    for line in difference.lines:
        row = None if line.found is None else row_yaml(line.found, difference.names, difference.types)
        match line.kind:
            case Kind.SAME:
                found.append((place, None))
            case Kind.CHANGED:
                found.append((place, row))
            case Kind.UNEXPECTED:
                found.append((None, row))
        place += line.expected is not None
    return found


def _locate(root: Node | None, path: Sequence[str | int]) -> _Place | None:
    place: _Place | None = None
    node, key = root, root
    is_in_flow = False
    for part in path:
        if isinstance(node, MappingNode) and isinstance(part, str):
            pair = next((pair for pair in node.value if pair[0].value == part), None)
            if pair is None:
                return None
            is_in_flow = is_in_flow or bool(node.flow_style)
            key, node = pair
        elif isinstance(node, SequenceNode) and isinstance(part, int) and part < len(node.value):
            is_in_flow = is_in_flow or bool(node.flow_style)
            node = node.value[part]
        else:
            return None
    if node is not None and key is not None:
        place = _Place(key, node, is_in_flow)
    return place


def _is_alias(place: _Place) -> bool:
    """An alias is composed into what it stands for, which is written before its key."""
    return _start(place.value) < _start(place.key)


def _start(node: Node) -> int:
    return int(node.start_mark.index)


def _line_end(text: str, node: Node) -> int:
    """The end of a value, with a comment behind it."""
    end = _end(text, node)
    comment = re.match(r"[ \t]+#[^\r\n]*", text[end:])
    return end + (comment.end() if comment else 0)


def _end(text: str, node: Node) -> int:
    """Where the last character of a value is; PyYAML counts what follows a block as part of it."""
    if isinstance(node, ScalarNode):
        return len(text[: node.end_mark.index].rstrip()) if node.style in ("|", ">") else int(node.end_mark.index)
    assert isinstance(node, SequenceNode | MappingNode)
    if node.flow_style or not node.value:
        return int(node.end_mark.index)
    last = node.value[-1]
    return _end(text, last[1] if isinstance(node, MappingNode) else last)
