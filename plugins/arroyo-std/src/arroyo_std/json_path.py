"""JSONPath: `$.user.tags[0]`, the parts of RFC 9535 that need no expression."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from arroyo_std.json_texts import array_of, children, descendants, finder, text_of, whole

Selector = Callable[[bytes], Iterable[bytes]]

_NAME = re.compile(r"[^\W\d][\w]*")
_INDEX = re.compile(r"-?\d{1,18}", re.ASCII)
_SLICE = re.compile(r"(-?\d{1,18})?\s*:\s*(-?\d{1,18})?(?:\s*:\s*(-?\d{1,18})?)?", re.ASCII)
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_ALLOWED = "names (.name, ['name']), elements ([0], [-1], [1:3]), all of them (.* or [*]) and descendants (..name)"

#: Steps that look at all descendants: each more multiplies what is found by the depth of the text.
_MOST_DEEP = 3
#: As deep as values may be.
_MOST_STEPS = 100


class JsonPathError(ValueError):
    """A path that cannot be read: what is wrong, at which character, and what is allowed."""


@dataclass(frozen=True, slots=True)
class _Step:
    select: Selector
    is_deep: bool


class JsonPath:
    """The values that a path finds in a text."""

    def __init__(self, steps: list[_Step]) -> None:
        self._steps = steps

    def find(self, text: str | bytes) -> list[bytes] | None:
        """The JSON texts of the values, in order; None where the text is not JSON."""
        root = whole(text)
        if root is None:
            return None
        nodes: Iterable[bytes] = [root]
        for step in self._steps:
            nodes = _selected(step, nodes)
        return list(nodes)

    def find_first(self, text: str | bytes) -> bytes | None:
        """The JSON text of the first value; None where there is none."""
        found = self.find(text)
        return found[0] if found else None


@lru_cache(maxsize=256)
def parse_path(text: str) -> JsonPath:
    """Raises `JsonPathError`."""
    if not text.startswith("$"):
        raise JsonPathError(f"the JSON path {text!r} does not start with $, the whole text; write '$.name'")
    steps: list[_Step] = []
    at = 1
    while at < len(text):
        step, at = _parse_step(text, at)
        steps.append(step)
    if len(steps) > _MOST_STEPS:
        raise JsonPathError(
            f"the JSON path {text[:100]!r} has {len(steps)} steps, and at most {_MOST_STEPS} are allowed"
        )
    deep = sum(each.is_deep for each in steps)
    if deep > _MOST_DEEP:
        raise JsonPathError(f"the JSON path {text[:100]!r} has {deep} times '..', and at most {_MOST_DEEP} are allowed")
    return JsonPath(steps)


def _selected(step: _Step, nodes: Iterable[bytes]) -> Iterator[bytes]:
    for node in nodes:
        for each in descendants(node) if step.is_deep else (node,):
            yield from step.select(each)


def _parse_step(text: str, at: int) -> tuple[_Step, int]:
    is_deep = text.startswith("..", at)
    if is_deep or text[at] == ".":
        at += 2 if is_deep else 1
        if text.startswith("*", at):
            return _Step(children, is_deep), at + 1
        if found := _NAME.match(text, at):
            return _Step(_by_name(found.group()), is_deep), found.end()
        if not is_deep or not text.startswith("[", at):
            raise _wrong(text, at)
    if text[at] != "[":
        raise _wrong(text, at)
    selectors, at = _parse_brackets(text, at)
    return _Step(_any_of(selectors), is_deep), at


def _parse_brackets(text: str, at: int) -> tuple[list[Selector], int]:
    selectors: list[Selector] = []
    at = _past_blanks(text, at + 1)
    while True:
        selector, at = _parse_selector(text, at)
        selectors.append(selector)
        at = _past_blanks(text, at)
        if text.startswith("]", at):
            return selectors, at + 1
        if not text.startswith(",", at):
            raise _wrong(text, at)
        at = _past_blanks(text, at + 1)


def _parse_selector(text: str, at: int) -> tuple[Selector, int]:
    if text.startswith("*", at):
        return children, at + 1
    if found := _QUOTED.match(text, at):
        return _by_name(_unquoted(found.group(), text, at)), found.end()
    if found := _SLICE.match(text, at):
        bounds = [int(each) if each else None for each in found.groups()]
        return _by_slice(slice(*bounds)), found.end()
    if found := _INDEX.match(text, at):
        return _by_index(int(found.group())), found.end()
    raise _wrong(text, at)


def _unquoted(quoted: str, text: str, at: int) -> str:
    inner = quoted[1:-1]
    if quoted[0] == "'":
        inner = inner.replace("\\'", "'").replace('"', '\\"')
    name = text_of(f'"{inner}"'.encode())
    if name is None:
        raise _wrong(text, at)
    return name


def _by_name(name: str) -> Selector:
    find = finder(name)

    def select(value: bytes) -> Iterable[bytes]:
        found = find(value) if value[:1] == b"{" else None
        return () if found is None else (found,)

    return select


def _by_index(index: int) -> Selector:
    def select(value: bytes) -> Iterable[bytes]:
        elements = (array_of(value) if value[:1] == b"[" else None) or []
        return (bytes(elements[index]),) if -len(elements) <= index < len(elements) else ()

    return select


def _by_slice(bounds: slice) -> Selector:
    def select(value: bytes) -> Iterable[bytes]:
        elements = (array_of(value) if value[:1] == b"[" else None) or []
        # Steps of nothing select nothing, after RFC 9535.
        return () if bounds.step == 0 else [bytes(each) for each in elements[bounds]]

    return select


def _any_of(selectors: list[Selector]) -> Selector:
    if len(selectors) == 1:
        return selectors[0]
    return lambda value: [found for select in selectors for found in select(value)]


def _past_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _wrong(text: str, at: int) -> JsonPathError:
    found = f"{text[at]!r} at character {at + 1}" if at < len(text) else "it ends too early"
    if text.startswith("?", at):
        found = f"a filter at character {at + 1}; filter the rows instead"
    return JsonPathError(f"the JSON path {text!r} cannot be read: {found}; it is made of {_ALLOWED}")
