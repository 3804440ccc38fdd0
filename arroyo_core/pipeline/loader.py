"""Reads YAML into values with places, on PyYAML's events; its traps are closed on purpose.

Refused: duplicate keys, tags other than `!include`, several documents, aliases that explode or contain
themselves, deep nesting. Merge keys (`<<`) work. What a scalar means is decided in `document`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, cast

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

from arroyo_core.api.limits import ALIASED_VALUES, DEPTH, VALUES
from arroyo_core.errors import Location
from arroyo_core.pipeline.document import Entry, Scalar, YamlList, YamlMap, YamlValue, is_unresolved
from arroyo_core.pipeline.environment import Environment
from arroyo_core.pipeline.includes import INCLUDE, Includes
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.pipeline.substitution import References
from arroyo_core.pipeline.text import decode, place_in, split_lines

if TYPE_CHECKING:
    from yaml._yaml import Mark as CMark
    from yaml.error import Mark

#: PyYAML may be installed without it.
_CParser: type[yaml.CSafeLoader] | None = getattr(yaml, "CSafeLoader", None)
_MERGE = "<<"
#: Half of a character: no text in UTF-8 has one.
_SURROGATE = re.compile("[\ud800-\udfff]")
#: What PyYAML's two parsers do not take alike: tabs, rare line breaks, marks of byte order, what no YAML has;
#: `?` in lists, `|#`, tags, directives, the place of no value in `{a: }`, and no line break at the end.
_UNUSUAL = re.compile(
    "[^\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
    r"|\?|[|>][-+0-9]*#|!(?!include |= )|^%|:\s*[],}]|[^\n]\Z",
    re.MULTILINE,
)
_NO_CHARACTER = "an escape such as \\UFFFFFFFF or \\uD800 stands for no character"
_HINTS = {
    "mapping values are not allowed here": "a value that contains ': ' must be in quotes",
    "could not find expected ':'": "a key needs ': ' and a value",
    "found unexpected end of stream": "a quote is not closed",
    "found unexpected ':'": "a value that contains ':' must be in quotes",
}


__all__ = ["decode", "is_include", "load_document", "parse_events", "split_lines"]


class _UnreadableError(Exception):
    """What follows cannot be made sense of; the mistake is recorded."""


def load_document(
    text: str,
    *,
    file: str,
    environment: Environment,
    mistakes: Mistakes,
    references: References | None = None,
    includes: Includes | None = None,
) -> YamlValue | None:
    """The one document of `text`, None where it cannot be read at all; mistakes are recorded.

    Without `references` only the environment is known. Included files are read through `includes`.
    """
    references = references or References(environment)
    includes = includes or Includes()
    with includes.entered(file, text):
        return _compose(text, file, references, includes, mistakes)


def parse_events(text: str, *, file: str, mistakes: Mistakes) -> list[Event] | None:
    """PyYAML's events of a text, None with a mistake where it is not YAML."""
    try:
        return list(_checked_events(text))
    except (ReaderError, yaml.MarkedYAMLError) as error:
        _add_syntax_error(error, text, file, mistakes)
        return None


def _compose(
    text: str, file: str, references: References, includes: Includes, mistakes: Mistakes, depth: int = 0
) -> YamlValue | None:
    try:
        return _Composer(_events(text), text, file, references, includes, mistakes, depth=depth).document()
    except (ReaderError, yaml.MarkedYAMLError) as error:
        _add_syntax_error(error, text, file, mistakes)
        return None
    except _UnreadableError:
        return None


def is_include(event: Event) -> bool:
    """Whether a value is that of another file."""
    return isinstance(event, ScalarEvent) and event.tag == INCLUDE


def _events(text: str) -> Iterator[Event]:
    """The same as `_checked_events`, five times faster where the text is YAML."""
    done = 0
    if _CParser is not None and not _UNUSUAL.search(text):
        with suppress(yaml.YAMLError):
            for event in iter(_CParser(text).get_event, None):
                yield event
                done += 1
            return
    # The parser in C has found a mistake, or does not exist; messages and places are of that in Python.
    yield from islice(_checked_events(text), done, None)


def _checked_events(text: str) -> Iterator[Event]:
    loader = yaml.SafeLoader(text)
    try:
        while loader.check_event():
            event = loader.get_event()  # type: ignore[no-untyped-call]
            if isinstance(event, ScalarEvent) and _SURROGATE.search(event.value):
                raise yaml.MarkedYAMLError(problem=_NO_CHARACTER, problem_mark=cast("Mark", event.start_mark))
            yield event
    except (OverflowError, ValueError) as error:
        # PyYAML does not look how large the number of an escape is.
        raise yaml.MarkedYAMLError(problem=_NO_CHARACTER, problem_mark=loader.get_mark()) from error


def _mark(mark: Mark | CMark | None) -> Mark | CMark:
    assert mark is not None  # the parser marks every event
    return mark


def _add_syntax_error(error: ReaderError | yaml.MarkedYAMLError, text: str, file: str, mistakes: Mistakes) -> None:
    if isinstance(error, ReaderError):
        at = place_in(text, error.position, file)
        mistakes.add(f"the character #x{error.character:04x} is not allowed in YAML", at=at)
        return
    mark = error.problem_mark or error.context_mark
    if error.context_mark and (error.problem or "").startswith("found unexpected end of stream"):
        mark = error.context_mark
    place = Location(file, mark.line + 1, mark.column + 1) if mark else None
    problem = error.problem or "this is not YAML"
    if mark and text[mark.index : mark.index + 1] == "\t":
        mistakes.add("a tab cannot be used here: indent with spaces", at=place)
        return
    if mark and text[mark.index - 1 : mark.index + 1] == "${":
        mistakes.add('inside { } or [ ], ${NAME} must be in quotes: "${NAME}"', at=place)
        return
    hint = next((hint for start, hint in _HINTS.items() if problem.startswith(start)), None)
    context = f" {error.context}" if error.context else ""
    mistakes.add(f"YAML syntax:{context} {problem}" + (f"; {hint}" if hint else ""), at=place)


@dataclass(slots=True)
class _Composer:
    events: Iterator[Event]
    text: str
    file: str
    references: References
    includes: Includes
    mistakes: Mistakes
    depth: int = 0
    max_depth: int = field(default_factory=lambda: DEPTH.value)
    aliased_values: int = 0
    anchors: dict[str, YamlValue] = field(default_factory=dict)
    open_anchors: set[str] = field(default_factory=set)

    def document(self) -> YamlValue | None:
        event = next(self.events)
        assert isinstance(event, StreamStartEvent)
        event = next(self.events)
        if not isinstance(event, DocumentStartEvent):
            what = "the file is empty" + ("" if self.includes.is_nested else ": a pipeline needs a name and nodes")
            self.mistakes.add(what, at=Location(self.file, 1, 1))
            return None
        value = self.value(next(self.events))
        next(self.events)
        event = next(self.events)
        if isinstance(event, DocumentStartEvent):
            what = "value" if self.includes.is_nested else "pipeline"
            self.mistakes.add(f"a second document begins here: a file holds one {what}", at=self.at(event))
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
        self.includes.values += 1
        if self.includes.values > self.includes.max_values:
            self.mistakes.add(f"there are too many values: {VALUES.hint}", at=self.at(event))
            raise _UnreadableError
        if isinstance(event, ScalarEvent):
            return self.included(event) if is_include(event) else self.scalar(event)
        if getattr(event, "tag", None) == INCLUDE:
            self.mistakes.add(f"{INCLUDE} takes the path of a file: {INCLUDE} nodes.yaml", at=self.at(event))
            raise _UnreadableError
        self.depth += 1
        if self.depth > self.max_depth:
            self.mistakes.add(f"values are nested more than {DEPTH.text} deep; {DEPTH.other}", at=self.at(event))
            raise _UnreadableError
        value = self.sequence(event) if isinstance(event, SequenceStartEvent) else self.mapping(event)
        self.depth -= 1
        return value

    def scalar(self, event: ScalarEvent) -> Scalar:
        at = self.at(event)
        is_plain = not event.style
        if "$" not in event.value:
            return Scalar(at=at, text=event.value, written=event.value, is_plain=is_plain)
        start, end = _mark(event.start_mark).index, _mark(event.end_mark).index
        raw = self.text[start:end]

        reported: list[str] = []

        def report(message: str, reference: str, suggestion: str | None) -> None:
            reported.append(reference)
            found = max(raw.find(reference), 0)
            place = place_in(self.text, start + found, self.file)
            self.mistakes.add(message, at=place, value=reference, suggestion=suggestion)

        resolved = self.references.resolve(event.value, report)
        return Scalar(
            at=at,
            text=resolved.text,
            written=resolved.written,
            is_plain=is_plain if resolved.is_plain is None else resolved.is_plain,
            is_substituted=resolved.is_substituted,
            is_parameter=resolved.is_parameter,
            given=resolved.given,
            is_unresolved=bool(reported) or resolved.is_missing,
        )

    def included(self, event: ScalarEvent) -> YamlValue:
        """The value of another file; where it cannot be read, a mistake is recorded and it counts as unresolved."""
        path = self.scalar(event)
        unresolved = replace(path, is_unresolved=True)
        if path.is_unresolved:
            return unresolved
        if path.is_substituted:
            message = "the path of an !include cannot be read from the environment; a parameter can be used"
            self.mistakes.add(message, at=path.at, value=path.written)
            return unresolved
        found = self.includes.open(path.text, at=path.at, mistakes=self.mistakes)
        if found is None:
            return unresolved
        with self.includes.entered(*found):
            value = _compose(found[1], found[0], self.references, self.includes, self.mistakes, self.depth)
        return unresolved if value is None else value

    def sequence(self, start: Event) -> YamlList:
        items: list[YamlValue] = []
        while not isinstance(event := next(self.events), SequenceEndEvent):
            value = self.value(event)
            # A list that is included into a list becomes part of it: its nodes are nodes like the others.
            items += value.items if isinstance(value, YamlList) and is_include(event) else (value,)
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
        if is_include(event):
            self.mistakes.add("a key cannot be included", at=self.at(event))
        key = Scalar(at=self.at(event), text=event.value, written=event.value, is_plain=not event.style)
        if not key.text:
            self.mistakes.add("a key is missing before ':'", at=key.at)
        if event.anchor is not None:
            self.anchors[event.anchor] = key
        return key

    def merge_sources(self, value: YamlValue) -> list[YamlMap]:
        sources = value.items if isinstance(value, YamlList) else (value,)
        maps = [source for source in sources if isinstance(source, YamlMap)]
        if not all(isinstance(source, YamlMap) or is_unresolved(source) for source in sources):
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
        if self.aliased_values > ALIASED_VALUES.value:
            self.mistakes.add(
                f"aliases expand to {self.aliased_values} values; at most {ALIASED_VALUES.text} are allowed; "
                f"{ALIASED_VALUES.other}",
                at=at,
            )
            raise _UnreadableError
        return replace(value, at=at) if isinstance(value, Scalar) else value

    def refuse_tag(self, event: NodeEvent) -> None:
        tag = getattr(event, "tag", None)
        if tag is not None and tag != INCLUDE:
            written = tag.replace("tag:yaml.org,2002:", "!!")
            self.mistakes.add(
                f"tags such as {written} are not allowed; put a value in quotes to make it a string",
                at=self.at(event),
                value=written,
            )

    def at(self, event: Event) -> Location:
        mark = _mark(event.start_mark)
        return Location(self.file, mark.line + 1, mark.column + 1)
