"""Reads a YAML text into a `Document`: PyYAML's events, and every comment where it belongs.

A comment behind a value belongs to it. One on a line of its own belongs to what follows, unless it is indented
like what came before: then it ends that list or mapping.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from arroyo_core.api.limits import DEPTH
from arroyo_core.errors import Location
from arroyo_core.pipeline.loader import parse_events
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.pipeline.text import split_lines
from arroyo_devtools.formatting.comments import Comment, find_comments
from arroyo_devtools.formatting.tree import Alias, Collection, Document, Item, Note, Text, Tree

if TYPE_CHECKING:
    from yaml._yaml import Mark as CMark
    from yaml.error import Mark

    MarkLike: TypeAlias = Mark | CMark

#: Anchor and tag, behind which comments and the end of a line may stand.
_PROPERTIES = re.compile(r"(?:[&!]\S*\s+(?:#[^\n]*\n\s*)*)*")
_BARE_SIGN = re.compile(r"\A#(?![!#\s]|\Z)")


class _UnreadableError(Exception):
    """The mistake is recorded."""


def read_layout(text: str, *, file: str, mistakes: Mistakes) -> Document | None:
    """The tree of a text; None after recording why there is none."""
    events = parse_events(text, file=file, mistakes=mistakes)
    if events is None:
        return None
    try:
        return _Reader(text, file, events, find_comments(text), mistakes).document()
    except _UnreadableError:
        return None


def _is_nothing(event: Event) -> bool:
    if not isinstance(event, ScalarEvent) or event.anchor is not None or event.tag is not None:
        return False
    return not event.value and not event.style


class _Reader:
    def __init__(
        self, text: str, file: str, events: Sequence[Event], comments: Sequence[Comment], mistakes: Mistakes
    ) -> None:
        self._text = text
        self._lines = split_lines(text)
        self._file = file
        self._events = deque(events)
        self._comments = deque(comments)
        self._mistakes = mistakes
        self._depth = 0

    def document(self) -> Document:
        starts = [event for event in self._events if isinstance(event, DocumentStartEvent)]
        if len(starts) > 1:
            raise self._refusal("a second document begins here: a file holds one", starts[1])
        if not starts:
            return Document(root=None, tail=self._take_notes())
        while not isinstance(self._events.popleft(), DocumentStartEvent):
            pass
        if _is_nothing(self._events[0]):
            # Without its `---` it is as empty.
            return Document(root=None, tail=self._take_notes())
        if isinstance(self._events[0], ScalarEvent | AliasEvent):
            lone = Item(key=None, value=Alias(name=""), notes=self._take_notes(_start(self._events[0])))
            self._read_value(lone, column=-1)
            return Document(root=lone.value, notes=lone.notes, trailing=lone.trailing, tail=self._take_notes())
        root, _ = self._tree(column=-1)
        assert isinstance(root, Collection)
        root.tail += self._take_notes()
        return Document(root=root, head=_take_head(root))

    def _tree(self, *, column: int) -> tuple[Tree, MarkLike]:
        """The next value, and where it ends."""
        event = self._events.popleft()
        if isinstance(event, AliasEvent):
            return Alias(name=str(event.anchor)), _end(event)
        if isinstance(event, ScalarEvent):
            return self._scalar(event), _end(event)
        assert isinstance(event, MappingStartEvent | SequenceStartEvent)
        self._depth += 1
        if self._depth > DEPTH.value:
            raise self._refusal(f"values are nested more than {DEPTH.text} deep; {DEPTH.other}", event)
        found, end = self._collection(event, column)
        self._depth -= 1
        return found, end

    def _scalar(self, event: ScalarEvent) -> Text:
        begin = _start(event).index
        if event.anchor is not None or event.tag is not None:
            properties = _PROPERTIES.match(self._text, begin)
            begin = properties.end() if properties else begin
        lines = split_lines(self._text[begin : _end(event).index])
        return Text(
            value=event.value,
            style=event.style or None,
            lines=tuple(lines) if len(lines) > 1 else (),
            anchor=event.anchor,
            tag=event.tag,
        )

    def _collection(self, event: MappingStartEvent | SequenceStartEvent, outer: int) -> tuple[Collection, MarkLike]:
        found = Collection(
            is_map=isinstance(event, MappingStartEvent),
            is_flow=bool(event.flow_style),
            anchor=event.anchor,
            tag=event.tag,
        )
        column = self._column(event)
        while not isinstance(self._events[0], MappingEndEvent | SequenceEndEvent):
            found.items.append(self._item(found, column))
        end = self._events.popleft()
        if found.is_flow:
            found.tail = self._take_notes(_start(end))
        else:
            found.tail = self._take_notes(_start(self._events[0]), least_column=max(column, outer + 1))
        return found, _end(end)

    def _column(self, event: MappingStartEvent | SequenceStartEvent) -> int:
        """The column of the items of a block."""
        if event.anchor is None and event.tag is None:
            return _start(event).column
        # The anchor or the tag stands before the items, and on another line.
        line = self._lines[_start(self._events[0]).line]
        return len(line) - len(line.lstrip(" "))

    def _item(self, within: Collection, column: int) -> Item:
        start = _start(self._events[0])
        item = Item(key=None, value=Alias(name=""), notes=self._take_notes(start))
        before = self._lines[start.line][: start.column]
        is_first_in_line = not within.is_flow or not before.strip()
        item.is_apart = is_first_in_line and self._is_blank(start.line - 1)
        if within.is_map:
            item.key = self._key()
            self._take_between(item)
        self._read_value(item, column=column)
        return item

    def _key(self) -> Text:
        event = self._events.popleft()
        if not isinstance(event, ScalarEvent):
            raise self._refusal("a key must be a string, not a list, a mapping or an alias", event)
        return self._scalar(event)

    def _take_between(self, item: Item) -> None:
        """Comments between a key and its value: those of a block on lines of their own belong to its first item."""
        value = self._events[0]
        is_block = isinstance(value, MappingStartEvent | SequenceStartEvent) and not value.flow_style
        while self._comments and self._comments[0].index < _start(value).index:
            if is_block and self._comments[0].is_alone:
                return
            self._add_comment(item, self._comments.popleft())

    def _read_value(self, item: Item, *, column: int) -> None:
        start = _start(self._events[0])
        item.value, end = self._tree(column=column)
        if isinstance(item.value, Collection) and not item.value.is_flow:
            return
        is_block = isinstance(item.value, Text) and item.value.style in ("|", ">")
        if isinstance(item.value, Text) and not is_block:
            while self._comments and self._comments[0].index < end.index:
                # Between an anchor, or a tag, and what it is of.
                self._add_comment(item, self._comments.popleft())
        line = start.line if is_block else end.line
        following = end.index if is_block else _start(self._events[0]).index
        while self._comments and self._comments[0].index < following and self._comments[0].line == line:
            self._add_comment(item, self._comments.popleft())

    def _add_comment(self, item: Item, comment: Comment) -> None:
        if comment.is_alone:
            item.notes.append(self._note(comment))
            return
        if item.trailing is not None:
            item.notes.append(Note(text=item.trailing))
        item.trailing = _tidy(comment.text)

    def _take_notes(self, before: MarkLike | None = None, *, least_column: int = 0) -> list[Note]:
        """The comments up to a place, as long as they are indented far enough."""
        found = []
        while self._comments:
            comment = self._comments[0]
            if (before is not None and comment.index >= before.index) or comment.column < least_column:
                break
            found.append(self._note(self._comments.popleft()))
        return found

    def _note(self, comment: Comment) -> Note:
        return Note(text=_tidy(comment.text), is_apart=comment.is_alone and self._is_blank(comment.line - 1))

    def _is_blank(self, line: int) -> bool:
        return line >= 0 and not self._lines[line].strip()

    def _refusal(self, message: str, event: Event) -> _UnreadableError:
        mark = _start(event)
        self._mistakes.add(message, at=Location(self._file, mark.line + 1, mark.column + 1))
        return _UnreadableError(message)


def _take_head(root: Collection) -> list[Note]:
    """Comments at the top that a blank line divides from the first item: they belong to the whole file."""
    if not root.items:
        return []
    first = root.items[0]
    ends = [place for place, note in enumerate(first.notes) if place and note.is_apart]
    ends += [len(first.notes)] if first.is_apart and first.notes else []
    if not ends:
        return []
    head, first.notes = first.notes[: ends[-1]], first.notes[ends[-1] :]
    # The blank line goes with them.
    if first.notes:
        first.notes[0].is_apart = False
    else:
        first.is_apart = False
    return head


def _tidy(comment: str) -> str:
    return _BARE_SIGN.sub("# ", comment)


def _start(event: Event) -> MarkLike:
    assert event.start_mark is not None  # the parser marks every event
    return event.start_mark


def _end(event: Event) -> MarkLike:
    assert event.end_mark is not None
    return event.end_mark
