"""Writes a `Document` in the canonical layout.

Two spaces for each level, lists indented below their key, `{a: 1}` and `[a, b]` without space inside and only where
they fit on their line, double quotes, one blank line at most, comments behind lines that follow one another aligned.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from arroyo_devtools.formatting.tree import Alias, Collection, Document, Item, Note, Text, Tree, has_comments

WIDTH = 120
_STEP = 2
_BEFORE_COMMENT = "  "
#: Comments are not aligned where one would be farther than this from its line.
_MOST_SPACE = 40


@dataclass(slots=True)
class _Line:
    text: str
    comment: str | None = None


def write_layout(document: Document) -> str:
    """The text, which ends with a line break unless there is nothing to write."""
    writer = _Writer()
    writer.notes(document.head, 0)
    if document.head:
        writer.blank()
    writer.notes(document.notes, 0)
    root = document.root
    if isinstance(root, Collection) and root.items and root.anchor is None and root.tag is None:
        writer.block(root, 0)
    elif isinstance(root, Collection):
        writer.value("", root, 0, None)
        writer.notes(root.tail if not root.items else (), 0)
    elif root is not None:
        writer.value("", root, 0, document.trailing)
    writer.notes(document.tail, 0)
    return "".join(f"{line}\n" for line in _aligned(writer.lines))


class _Writer:
    def __init__(self) -> None:
        self.lines: list[_Line] = []

    def blank(self) -> None:
        """A blank line, unless there is one, or nothing above it."""
        if self.lines and self.lines[-1].text:
            self.lines.append(_Line(""))

    def notes(self, notes: Sequence[Note], indent: int, *, is_first: bool = False) -> None:
        for place, note in enumerate(notes):
            if note.is_apart and not (is_first and place == 0):
                self.blank()
            self.lines.append(_Line(" " * indent + note.text))

    def block(self, collection: Collection, indent: int) -> None:
        """The items, each from the column `indent` on."""
        for place, item in enumerate(collection.items):
            self.notes(item.notes, indent, is_first=place == 0)
            if item.is_apart and (place or item.notes):
                self.blank()
            if item.key is None:
                self.list_item(item, indent)
            else:
                self.value(f"{' ' * indent}{_key(item.key)}:", item.value, indent, item.trailing)
        self.notes(collection.tail, indent)

    def list_item(self, item: Item, indent: int) -> None:
        dash = " " * indent + "-"
        value = self.block_behind_dash(item, indent)
        if value is None:
            self.value(dash, item.value, indent, item.trailing)
            return
        self.notes(self.take_first_notes(item, indent), indent)
        start = len(self.lines)
        self.block(value, indent + _STEP)
        self.lines[start].text = f"{dash} {self.lines[start].text[indent + _STEP :]}"

    def block_behind_dash(self, item: Item, indent: int) -> Collection | None:
        """The value of a list item, if its first item begins on the line of the dash."""
        value = item.value
        if not isinstance(value, Collection) or _properties(value):
            return None
        return value if self.inline(" " * indent + "- ", value) is None else None

    def take_first_notes(self, item: Item, indent: int) -> list[Note]:
        """The comments of everything that begins on the line of the dash: they go before it."""
        notes: list[Note] = []
        following: Item | None = item
        while following is not None and (value := self.block_behind_dash(following, indent)) is not None:
            if following.trailing is not None:
                notes.append(Note(text=following.trailing))
            first = value.items[0]
            notes += first.notes
            following.trailing, first.notes, first.is_apart = None, [], False
            indent += _STEP
            following = first if first.key is None else None
        return notes

    def value(self, prefix: str, value: Tree, indent: int, trailing: str | None) -> None:
        """A value behind `prefix`: a key, a dash or nothing."""
        head = " ".join(part for part in (prefix, _properties(value)) if part)
        before = f"{head} " if head else ""
        if isinstance(value, Alias):
            self.lines.append(_Line(f"{before}*{value.name}", trailing))
        elif isinstance(value, Text):
            first, *rest = _scalar_lines(value, indent)
            lines = [_Line(f"{before}{first}" if first else head), *(_Line(line) for line in rest)]
            # Behind the sign of a block there may be a comment, inside of quotes there may not.
            lines[0 if value.style in ("|", ">") else -1].comment = trailing
            self.lines += lines
        elif (inline := self.inline(before, value)) is not None:
            self.lines.append(_Line(f"{before}{inline}", trailing))
        else:
            self.lines.append(_Line(head, trailing))
            self.block(value, indent + _STEP if prefix else indent)

    def inline(self, before: str, value: Collection) -> str | None:
        """The value on one line, if it was written so and fits."""
        if value.items and (not value.is_flow or has_comments(value)):
            return None
        text = _inline_body(value) if not value.tail else None
        if text is None or (value.items and len(before) + len(text) > WIDTH):
            return None
        return text


def _inline(tree: Tree) -> str | None:
    if isinstance(tree, Alias):
        return f"*{tree.name}"
    if isinstance(tree, Text):
        # What is empty or takes several lines reads better in a block.
        text = _one_line(tree) if not tree.lines else None
        return " ".join(part for part in (_properties(tree), text) if part) if text else None
    body = _inline_body(tree)
    return " ".join(part for part in (_properties(tree), body) if part) if body else None


def _inline_body(collection: Collection) -> str | None:
    parts = [_inline_item(item) for item in collection.items]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    body = ", ".join(known)
    return f"{{{body}}}" if collection.is_map else f"[{body}]"


def _inline_item(item: Item) -> str | None:
    value = _inline(item.value)
    if value is None or item.key is None:
        return value
    return f"{_key(item.key)}: {value}"


def _properties(tree: Tree) -> str:
    """Anchor and tag, as they are written before a value."""
    if isinstance(tree, Alias):
        return ""
    anchor = f"&{tree.anchor}" if tree.anchor is not None else ""
    tag = (tree.tag or "").replace("tag:yaml.org,2002:", "!!")
    return " ".join(part for part in (anchor, tag) if part)


def _key(key: Text) -> str:
    return " ".join(part for part in (_properties(key), _one_line(key)) if part)


def _one_line(text: Text) -> str:
    """A scalar that was written on one line."""
    return text.value if text.style is None else _quoted(text.value)


def _scalar_lines(text: Text, indent: int) -> list[str]:
    """The first goes behind the key, the others are whole."""
    if text.style == "|":
        return _literal(text.value, indent)
    if text.style == ">":
        return _folded(text, indent)
    if not text.lines:
        return [_one_line(text)]
    # Space at the ends of lines means nothing, unless it is escaped.
    first, *rest = text.lines
    stripped = [line.strip() if not line.endswith(("\\ ", "\\\t")) else line.lstrip() for line in rest]
    return [first.rstrip() or first, *(" " * (indent + _STEP) + line if line else "" for line in stripped)]


def _literal(value: str, indent: int) -> list[str]:
    lines = value.split("\n")
    if not value.strip("\n") or any(not (letter.isprintable() or letter in "\t\n") for letter in value):
        return [_quoted(value)]
    is_ended = lines[-1] == ""
    body = lines[:-1] if is_ended else lines
    chomping = "" if is_ended and body[-1] else "+" if is_ended else "-"
    return [f"|{_indicator(body)}{chomping}", *_indented(body, indent)]


def _folded(text: Text, indent: int) -> list[str]:
    header, *rest = text.lines or ("",)
    sign = header.split("#")[0].strip()
    content = [line for line in rest if line.strip()]
    if not content or any(letter.isdigit() for letter in sign):
        # How far it is indented was said, not shown: its value says the same.
        return _literal(text.value, indent) if text.value.strip("\n") else [_quoted(text.value)]
    width = len(content[0]) - len(content[0].lstrip(" "))
    body = [line[width:] if line.strip(" ") else "" for line in rest]
    while body and not body[-1]:
        body.pop()
    # The line breaks at the end are said by the sign, and those after the first by blank lines.
    breaks = len(text.value) - len(text.value.rstrip("\n"))
    chomping = "-" if breaks == 0 else "+" if breaks > 1 else ""
    return [f">{chomping}", *_indented([*body, *[""] * (breaks - 1)], indent)]


def _indicator(body: Sequence[str]) -> str:
    """How far the lines are indented must be said where the first of them begins with space."""
    first = next((line for line in body if line), "")
    return str(_STEP) if first.startswith((" ", "\t")) or (body and not body[0]) else ""


def _indented(body: Sequence[str], indent: int) -> Iterator[str]:
    return (" " * (indent + _STEP) + line if line else "" for line in body)


def _quoted(value: str) -> str:
    """In double quotes; in single ones where that saves escapes."""
    if ('"' in value or "\\" in value) and value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    escaped = json.dumps(value, ensure_ascii=False)
    return "".join(letter if letter.isprintable() else _escape(letter) for letter in escaped)


def _escape(letter: str) -> str:
    code = ord(letter)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _aligned(lines: Sequence[_Line]) -> Iterator[str]:
    """The lines with their comments; those of lines that follow one another begin at one column, if they fit."""
    place = 0
    while place < len(lines):
        run = [lines[place]]
        while run[-1].comment is not None and place + len(run) < len(lines):
            following = lines[place + len(run)]
            if following.comment is None:
                break
            run.append(following)
        yield from _aligned_run(run)
        place += len(run)


def _aligned_run(run: Sequence[_Line]) -> Iterator[str]:
    widths = [len(line.text) for line in run]
    width = max(widths)
    fits = all(width + len(_BEFORE_COMMENT) + len(line.comment or "") <= WIDTH for line in run)
    fits = fits and width - min(widths) <= _MOST_SPACE
    for line in run:
        if line.comment is None:
            yield line.text
        else:
            text = line.text.ljust(width) if fits else line.text
            yield f"{text}{_BEFORE_COMMENT if text else ''}{line.comment}"
