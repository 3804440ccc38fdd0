"""Reads YAML into values with places, on PyYAML's events; its traps are closed on purpose.

Refused: duplicate keys, tags, several documents, aliases that explode or contain themselves,
deep nesting. Merge keys (`<<`) work. What a scalar means is decided in `document`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamStartEvent,
)
from yaml.reader import ReaderError

from arroyo_core.errors import Location
from arroyo_core.graph.document import Entry, Scalar, YamlList, YamlMap, YamlValue
from arroyo_core.graph.environment import Environment
from arroyo_core.graph.mistakes import Mistakes

if TYPE_CHECKING:
    from yaml._yaml import Mark as CMark
    from yaml.error import Mark

#: How many values all aliases of a file may stand for.
MAX_ALIASED_VALUES = 10_000
MAX_DEPTH = 64

_LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_MERGE = "<<"
_HINTS = {
    "mapping values are not allowed here": "a value that contains ': ' must be in quotes",
    "could not find expected ':'": "a key needs ': ' and a value",
    "found unexpected end of stream": "a quote is not closed",
    "found unexpected ':'": "a value that contains ':' must be in quotes",
}


class _UnreadableError(Exception):
    """What follows cannot be made sense of; the mistake is recorded."""


def load_document(text: str, *, file: str, environment: Environment, mistakes: Mistakes) -> YamlValue | None:
    """The one document of `text`, None where it cannot be read at all; mistakes are recorded."""
    try:
        loader = yaml.SafeLoader(text)
    except ReaderError as error:
        at = _place(text, error.position, file)
        mistakes.add(f"the character #x{error.character:04x} is not allowed in YAML", at=at)
        return None
    try:
        return _Composer(_events(loader), text, file, environment, mistakes).document()
    except yaml.MarkedYAMLError as error:
        _add_syntax_error(error, text, file, mistakes)
        return None
    except _UnreadableError:
        return None


def decode(data: bytes, *, file: str, mistakes: Mistakes) -> str | None:
    """The text of a file, None with a mistake where it is not UTF-8. A byte-order mark is dropped."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8-sig", errors="replace")
        mistakes.add(
            f"the file is not UTF-8: byte 0x{data[error.start]:02x} cannot be read",
            at=_place(before, len(before), file),
        )
        return None


def split_lines(text: str) -> list[str]:
    """The lines of a text as YAML counts them."""
    return _LINE_BREAK.split(text)


def _events(loader: yaml.SafeLoader) -> Iterator[Event]:
    while loader.check_event():
        yield loader.get_event()  # type: ignore[no-untyped-call]


def _mark(mark: Mark | CMark | None) -> Mark | CMark:
    assert mark is not None  # the parser marks every event
    return mark


def _place(text: str, index: int, file: str) -> Location:
    lines = split_lines(text[:index])
    return Location(file, len(lines), len(lines[-1]) + 1)


def _add_syntax_error(error: yaml.MarkedYAMLError, text: str, file: str, mistakes: Mistakes) -> None:
    mark = error.problem_mark or error.context_mark
    if error.context_mark and (error.problem or "").startswith("found unexpected end of stream"):
        mark = error.context_mark
    at = Location(file, mark.line + 1, mark.column + 1) if mark else None
    problem = error.problem or "this is not YAML"
    if mark and text[mark.index : mark.index + 1] == "\t":
        mistakes.add("a tab cannot be used here: indent with spaces", at=at)
        return
    if mark and text[mark.index - 1 : mark.index + 1] == "${":
        mistakes.add('inside { } or [ ], ${NAME} must be in quotes: "${NAME}"', at=at)
        return
    hint = next((hint for start, hint in _HINTS.items() if problem.startswith(start)), None)
    context = f" {error.context}" if error.context else ""
    mistakes.add(f"YAML syntax:{context} {problem}" + (f"; {hint}" if hint else ""), at=at)


@dataclass(slots=True)
class _Composer:
    events: Iterator[Event]
    text: str
    file: str
    environment: Environment
    mistakes: Mistakes
    depth: int = 0
    aliased_values: int = 0
    anchors: dict[str, YamlValue] = field(default_factory=dict)
    open_anchors: set[str] = field(default_factory=set)

    def document(self) -> YamlValue | None:
        event = next(self.events)
        assert isinstance(event, StreamStartEvent)
        event = next(self.events)
        if not isinstance(event, DocumentStartEvent):
            self.mistakes.add("the file is empty: a pipeline needs a name and nodes", at=Location(self.file, 1, 1))
            return None
        value = self.value(next(self.events))
        next(self.events)
        event = next(self.events)
        if isinstance(event, DocumentStartEvent):
            self.mistakes.add("a second document begins here: a file holds one pipeline", at=self.at(event))
        return value

    def value(self, event: Event) -> YamlValue:
        assert isinstance(event, NodeEvent)
        if isinstance(event, AliasEvent):
            return self.aliased(event)
        self.refuse_tag(event)
        if event.anchor is None:
            return self.content(event)
        self.open_anchors.add(event.anchor)
        value = self.content(event)
        self.open_anchors.discard(event.anchor)
        self.anchors[event.anchor] = value
        return value

    def content(self, event: NodeEvent) -> YamlValue:
        if isinstance(event, ScalarEvent):
            return self.scalar(event)
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.mistakes.add(f"values are nested more than {MAX_DEPTH} deep", at=self.at(event))
            raise _UnreadableError
        value = self.sequence(event) if isinstance(event, SequenceStartEvent) else self.mapping(event)
        self.depth -= 1
        return value

    def scalar(self, event: ScalarEvent) -> Scalar:
        at = self.at(event)
        is_plain = event.style is None
        if "$" not in event.value:
            return Scalar(at=at, text=event.value, written=event.value, is_plain=is_plain)
        start, end = _mark(event.start_mark).index, _mark(event.end_mark).index
        raw = self.text[start:end]

        reported: list[str] = []

        def report(message: str, reference: str) -> None:
            reported.append(reference)
            found = max(raw.find(reference), 0)
            place = _place(self.text, start + found, self.file)
            self.mistakes.add(message, at=place, value=reference)

        text = self.environment.substitute(event.value, report)
        return Scalar(
            at=at,
            text=text,
            written=event.value,
            is_plain=is_plain,
            is_substituted="${" in event.value,
            is_unresolved=bool(reported),
        )

    def sequence(self, start: Event) -> YamlList:
        items = []
        while not isinstance(event := next(self.events), SequenceEndEvent):
            items.append(self.value(event))
        return YamlList(at=self.at(start), items=tuple(items), size=1 + sum(item.size for item in items))

    def mapping(self, start: Event) -> YamlMap:
        assert isinstance(start, MappingStartEvent)
        entries: dict[str, Entry] = {}
        merged: list[YamlMap] = []
        while not isinstance(event := next(self.events), MappingEndEvent):
            key = self.key(event)
            value = self.value(next(self.events))
            if key.text == _MERGE and key.is_plain:
                merged += self.merge_sources(value)
            elif key.text in entries:
                first = entries[key.text].key_at
                self.mistakes.add(
                    f"key {key.text!r} is written twice: first in line {first.line}, column {first.column}",
                    at=key.at,
                    value=key.text,
                )
            else:
                entries[key.text] = Entry(key=key.text, key_at=key.at, value=value)
        for source in merged:
            for entry in source.entries:
                entries.setdefault(entry.key, entry)
        size = 1 + sum(entry.value.size for entry in entries.values())
        return YamlMap(at=self.at(start), entries=tuple(entries.values()), size=size)

    def key(self, event: Event) -> Scalar:
        if not isinstance(event, ScalarEvent):
            self.mistakes.add("a key must be a string, not a list, a mapping or an alias", at=self.at(event))
            raise _UnreadableError
        self.refuse_tag(event)
        key = Scalar(at=self.at(event), text=event.value, written=event.value, is_plain=event.style is None)
        if not key.text:
            self.mistakes.add("a key is missing before ':'", at=key.at)
        if event.anchor is not None:
            self.anchors[event.anchor] = key
        return key

    def merge_sources(self, value: YamlValue) -> list[YamlMap]:
        sources = value.items if isinstance(value, YamlList) else (value,)
        maps = [source for source in sources if isinstance(source, YamlMap)]
        if len(maps) != len(sources):
            self.mistakes.add("'<<' merges a mapping or a list of mappings", at=value.at)
        return maps

    def aliased(self, event: AliasEvent) -> YamlValue:
        at, name = self.at(event), str(event.anchor)
        if name in self.open_anchors:
            self.mistakes.add(f"alias *{name} is inside the value it stands for", at=at)
            raise _UnreadableError
        value = self.anchors.get(name)
        if value is None:
            self.mistakes.add_unknown(f"alias *{name} has no anchor before it", at=at, name=name, choices=self.anchors)
            return Scalar(at=at, text=f"*{name}", written=f"*{name}", is_plain=False, is_unresolved=True)
        self.aliased_values += value.size
        if self.aliased_values > MAX_ALIASED_VALUES:
            self.mistakes.add(
                f"aliases expand to {self.aliased_values} values; at most {MAX_ALIASED_VALUES} are allowed", at=at
            )
            raise _UnreadableError
        return replace(value, at=at) if isinstance(value, Scalar) else value

    def refuse_tag(self, event: NodeEvent) -> None:
        tag = getattr(event, "tag", None)
        if tag is not None:
            written = tag.replace("tag:yaml.org,2002:", "!!")
            self.mistakes.add(
                f"tags such as {written} are not allowed; put a value in quotes to make it a string",
                at=self.at(event),
                value=written,
            )

    def at(self, event: Event) -> Location:
        mark = _mark(event.start_mark)
        return Location(self.file, mark.line + 1, mark.column + 1)
