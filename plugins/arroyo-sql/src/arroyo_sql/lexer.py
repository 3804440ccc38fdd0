"""From the text of a script to tokens with their places. Linear in the length of the text; it never fails."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from arroyo_core.errors import Location
from arroyo_core.pipeline.mistakes import Mistakes


class Kind(StrEnum):
    """What a token is."""

    WORD = "word"
    #: A name in double quotes or backticks.
    QUOTED = "quoted"
    STRING = "string"
    NUMBER = "number"
    #: `${NAME}` outside of quotes.
    REFERENCE = "reference"
    #: One character of punctuation.
    SIGN = "sign"


@dataclass(frozen=True, slots=True)
class Token:
    """`text` is as written, quotes included; `value` what it means: words in lower case, texts without quotes.

    `escape` is the prefix of a text in which a backslash means something, or the tag of one between dollar signs.
    """

    kind: Kind
    text: str
    value: str
    start: int
    escape: str = ""

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def is_name(self) -> bool:
        return self.kind in (Kind.WORD, Kind.QUOTED)

    def is_word(self, word: str) -> bool:
        """Whether it is this keyword, given in upper case."""
        return self.kind is Kind.WORD and self.value == word.lower()

    def is_sign(self, sign: str) -> bool:
        return self.kind is Kind.SIGN and self.text == sign


@dataclass(slots=True)
class SourceText:
    """The text of a file, which knows the place of each of its characters."""

    file: str
    text: str
    _lines: list[int] = field(init=False)

    def __post_init__(self) -> None:
        starts = [index + 1 for index, character in enumerate(self.text) if character == "\n"]
        self._lines = [0, *starts]

    def at(self, offset: int) -> Location:
        line = bisect_right(self._lines, offset) - 1
        return Location(self.file, line + 1, offset - self._lines[line] + 1)


def tokenize(source: SourceText, mistakes: Mistakes) -> list[Token]:
    """All tokens but comments. What cannot be one is recorded, and left out, with all behind it where it has no end."""
    return list(_Lexer(source, mistakes).tokens())


def find_comments(source: SourceText) -> list[tuple[int, str]]:
    """Where each comment begins, and what it says."""
    lexer = _Lexer(source, Mistakes())
    for _ in lexer.tokens():
        pass
    return lexer.comments


_DIGITS = "0123456789"
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
#: Characters of a `${NAME:-default}`.
_MOST_OF_REFERENCE = 10_000
_OPEN_TEXT = {
    "'": "a text that begins here has no end: a ' is missing",
    '"': 'a name that begins here has no end: a " is missing',
    "`": "a name that begins here has no end: a ` is missing",
}


class _Lexer:
    def __init__(self, source: SourceText, mistakes: Mistakes) -> None:
        self.source = source
        self.text = source.text
        self.mistakes = mistakes
        self.position = 0
        self.comments: list[tuple[int, str]] = []

    def tokens(self) -> Iterator[Token]:
        while self.position < len(self.text):
            start = self.position
            token = self._next(self.text[start], start)
            if token is not None:
                self.position = token.end
                yield token

    def _next(self, character: str, start: int) -> Token | None:
        """The token that begins here; None after moving behind what is none."""
        following = self.text[start + 1 : start + 2]
        if character.isspace() or character == "\ufeff":
            self.position = start + 1
        elif character == "-" and following == "-":
            end = self.text.find("\n", start)
            self.position = len(self.text) if end < 0 else end
            self.comments.append((start, self.text[start : self.position]))
        elif character == "/" and following == "*":
            self._comment(start)
        elif character in "'\"`":
            return self._quoted(start, start, character)
        elif character in "eE" and following == "'":
            return self._quoted(start, start + 1, "'", escape="E")
        elif character == "$":
            return self._dollar(start)
        elif character in _DIGITS or (character == "." and following in _DIGITS and following):
            return self._number(start)
        elif character == "_" or character.isalpha():
            return self._word(start)
        elif character.isprintable():
            return Token(Kind.SIGN, character, character, start)
        else:
            self._add(f"the character U+{ord(character):04X} cannot be in a script", start)
            self.position = start + 1
        return None

    def _add(self, message: str, offset: int) -> None:
        self.mistakes.add(message, at=self.source.at(offset))

    def _comment(self, start: int) -> None:
        """Comments may be nested, as in Postgres and DataFusion."""
        depth, at = 1, start + 2
        while depth:
            closing, opening = self.text.find("*/", at), self.text.find("/*", at)
            if closing < 0:
                self._add("a comment that begins here has no end: */ is missing", start)
                at = len(self.text)
                break
            is_opening = 0 <= opening < closing
            depth += 1 if is_opening else -1
            at = (opening if is_opening else closing) + 2
        self.position = at
        self.comments.append((start, self.text[start:at]))

    def _quoted(self, start: int, opening: int, quote: str, escape: str = "") -> Token | None:
        parts: list[str] = []
        at = opening + 1
        # One search for both: to look for either to the end of the script, each time, would take for ever.
        stops = re.compile(re.escape(quote) + (r"|\\" if escape else ""))
        while True:
            found = stops.search(self.text, at)
            if found is None:
                self._add(_OPEN_TEXT[quote], start)
                self.position = len(self.text)
                return None
            end = found.start()
            parts.append(self.text[at:end])
            pair = self.text[end + 1 : end + 2]
            if self.text[end] == "\\" and escape:
                parts.append(_ESCAPES.get(pair, pair))
            elif pair == quote:
                parts.append(quote)
            else:
                break
            at = end + 2
        kind = Kind.STRING if quote == "'" else Kind.QUOTED
        if kind is Kind.QUOTED and not "".join(parts):
            self._add("a name must not be empty", start)
        return Token(kind, self.text[start : end + 1], "".join(parts), start, escape)

    def _dollar(self, start: int) -> Token | None:
        """`${NAME}`, or a text between `$tag$` and `$tag$`."""
        if self.text.startswith("${", start):
            end = self.text.find("}", start, start + _MOST_OF_REFERENCE)
            if end >= 0 and "\n" not in self.text[start:end]:
                return Token(Kind.REFERENCE, self.text[start : end + 1], self.text[start : end + 1], start)
            self._add("'${' begins no reference: write ${NAME} or ${NAME:-default}", start)
            self.position = start + 2
            return None
        at = start + 1
        while at < len(self.text) and (self.text[at] == "_" or self.text[at].isalnum()):
            at += 1
        if not self.text.startswith("$", at):
            return Token(Kind.SIGN, "$", "$", start)
        tag = self.text[start : at + 1]
        end = self.text.find(tag, at + 1)
        if end < 0:
            self._add(f"a text that begins here has no end: {tag} is missing", start)
            self.position = len(self.text)
            return None
        return Token(Kind.STRING, self.text[start : end + len(tag)], self.text[at + 1 : end], start, tag)

    def _number(self, start: int) -> Token:
        at = self._digits(start)
        if self.text.startswith(".", at) and not self.text.startswith("..", at):
            at = self._digits(at + 1)
        if self.text[at : at + 1] in ("e", "E"):
            sign = at + 1 + (self.text[at + 1 : at + 2] in ("+", "-"))
            if self.text[sign : sign + 1] and self.text[sign] in _DIGITS:
                at = self._digits(sign)
        text = self.text[start:at]
        return Token(Kind.NUMBER, text, text, start)

    def _digits(self, at: int) -> int:
        while at < len(self.text) and self.text[at] in _DIGITS:
            at += 1
        return at

    def _word(self, start: int) -> Token:
        at = start + 1
        while at < len(self.text) and (self.text[at] == "_" or self.text[at].isalnum()):
            at += 1
        text = self.text[start:at]
        return Token(Kind.WORD, text, text.lower(), start)
