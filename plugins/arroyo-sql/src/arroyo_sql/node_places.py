"""Where the characters of a query stand in a YAML file, which may write it in quotes, folded, and with references."""

from __future__ import annotations

from dataclasses import dataclass

from arroyo_core.pipeline.document import Scalar
from arroyo_sql.script import Text

#: What a backslash means within double quotes, where that is one character which SQL may have.
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", " ": " ", "\n": " ", "/": "/", "\\": "\\", '"': '"', "0": "\0"}
_HEXADECIMAL = {"x": 2, "u": 4, "U": 8}
_REFERENCE = "${"


def place(value: Scalar, sql: str, file: str) -> Text:
    """The query `sql` of a scalar with its places in the file.

    `sql` is the scalar's text with values for its references. Behind something that is written in a way that is not
    understood here, places are near by.
    """
    lines = file.split("\n")
    start = sum(len(line) + 1 for line in lines[: value.at.line - 1]) + value.at.column - 1
    raw = _Raw(file, start)
    if not sql.strip() or start >= len(file):
        return Text(sql, value.at)
    shifts: list[tuple[int, int]] = []
    at = 0
    while at < len(sql):
        if sql[at].isspace():
            at += 1
            continue
        raw.skip_space()
        if file.startswith(_REFERENCE, raw.at):
            _shift(shifts, at, raw.at - start)
            behind = raw.behind_reference()
            found = sql.find(behind, at) if behind else -1
            if found < 0:
                break
            at = found
            continue
        character, length = raw.character()
        if character != sql[at]:
            break
        _shift(shifts, at, raw.at - start)
        raw.at += length
        at += 1
    if not shifts:
        return Text(sql, value.at)
    # A query begins with its first word.
    first = (0, shifts[0][0] + shifts[0][1])
    return Text(sql, value.at, file[start:], (first, *shifts) if shifts[0][0] else tuple(shifts))


def _shift(shifts: list[tuple[int, int]], at: int, written: int) -> None:
    """Say that the character `at` of the query is the character `written` of what the file has."""
    if not shifts or shifts[-1][1] != written - at:
        shifts.append((at, written - at))


@dataclass(slots=True)
class _Raw:
    """Reads what a file has, from `at` on."""

    file: str
    at: int
    quote: str = ""

    def __post_init__(self) -> None:
        opening = self.file[self.at : self.at + 1]
        if opening in ("'", '"'):
            self.quote = opening
            self.at += 1
        elif opening in ("|", ">"):
            self.at = self.file.find("\n", self.at) + 1 or len(self.file)

    def character(self) -> tuple[str, int]:
        """The next character of the text, and of how many of the file it is made."""
        one, other = self.file[self.at : self.at + 1], self.file[self.at + 1 : self.at + 2]
        if self.quote == "'" and one == other == "'":
            return "'", 2
        if self.quote != '"' or one != "\\":
            return one, 1
        if other not in _HEXADECIMAL:
            return _ESCAPES.get(other, ""), 2
        digits = self.file[self.at + 2 : self.at + 2 + _HEXADECIMAL[other]]
        try:
            return chr(int(digits, 16)), 2 + len(digits)
        except (ValueError, OverflowError):
            return "", 2

    def skip_space(self) -> None:
        while True:
            character, length = self.character()
            if not character.isspace():
                return
            self.at += length

    def behind_reference(self) -> str:
        """Go behind a reference; what stands there, up to the next space or reference."""
        end = self.file.find("}", self.at)
        self.at = end + 1 if end >= 0 else len(self.file)
        self.skip_space()
        before, found = self.at, ""
        while self.at < len(self.file) and not self.file.startswith(_REFERENCE, self.at):
            character, length = self.character()
            if not character or character.isspace() or (character == self.quote and length == 1):
                break
            found += character
            self.at += length
        self.at = before
        return found
