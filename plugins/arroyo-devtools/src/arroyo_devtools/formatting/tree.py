"""A YAML text as a tree that keeps what values do not: comments, blank lines, styles, anchors and tags."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(slots=True, kw_only=True)
class Note:
    """A comment on a line of its own."""

    text: str
    #: A blank line is before it.
    is_apart: bool = False


@dataclass(slots=True, kw_only=True)
class Text:
    """A scalar. `lines` is how it is written, for those that take several lines."""

    value: str
    #: As PyYAML has it: None for plain, else `'`, `"`, `|` or `>`.
    style: str | None
    lines: tuple[str, ...] = ()
    anchor: str | None = None
    tag: str | None = None


@dataclass(slots=True, kw_only=True)
class Alias:
    """What was written elsewhere, under an anchor."""

    name: str


@dataclass(slots=True, kw_only=True)
class Item:
    """An item of a list, or an entry of a mapping with its key."""

    key: Text | None
    value: Tree
    notes: list[Note] = field(default_factory=list)
    #: The comment at the end of its first line, or of its only one.
    trailing: str | None = None
    is_apart: bool = False


@dataclass(slots=True, kw_only=True)
class Collection:
    """A list or a mapping; `tail` are the comments behind its last item."""

    is_map: bool
    is_flow: bool
    items: list[Item] = field(default_factory=list)
    tail: list[Note] = field(default_factory=list)
    anchor: str | None = None
    tag: str | None = None

    def item(self, key: str) -> Item | None:
        return next((item for item in self.items if item.key is not None and item.key.value == key), None)


Tree: TypeAlias = Text | Alias | Collection


@dataclass(slots=True, kw_only=True)
class Document:
    """`head` are the comments at the top that belong to no item; `notes` and `trailing` are for a lone value."""

    root: Tree | None
    head: list[Note] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    trailing: str | None = None
    tail: list[Note] = field(default_factory=list)


def has_comments(tree: Tree) -> bool:
    if not isinstance(tree, Collection):
        return False
    return bool(tree.tail) or any(item.notes or item.trailing or has_comments(item.value) for item in tree.items)


def has_anchors(tree: Tree) -> bool:
    """Whether the order of values matters, because some stand for others."""
    if isinstance(tree, Alias) or tree.anchor is not None:
        return True
    return isinstance(tree, Collection) and any(has_anchors(item.value) for item in tree.items)


def all_notes(document: Document) -> Iterator[str]:
    """The text of every comment."""
    yield from (note.text for note in (*document.head, *document.notes, *document.tail))
    if document.trailing is not None:
        yield document.trailing
    if document.root is not None:
        yield from _notes_of(document.root)


def _notes_of(tree: Tree) -> Iterator[str]:
    if isinstance(tree, Collection):
        for item in tree.items:
            yield from (note.text for note in item.notes)
            if item.trailing is not None:
                yield item.trailing
            yield from _notes_of(item.value)
        yield from (note.text for note in tree.tail)
