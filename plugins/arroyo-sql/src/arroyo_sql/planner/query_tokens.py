"""The tokens of a query, as it is written or as it is rewritten."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from arroyo_core.errors import Location
from arroyo_sql.script import Text

_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)|(?P<string>'(?:[^']|'')*')|(?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`)"""
    r"""|(?P<number>\d+(?:\.\d+)?)|(?P<word>[A-Za-z_]\w*)|(?P<mark>=>|<=|>=|<>|!=|::|.)""",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def word(self) -> str:
        """In capitals; a quoted name is no word."""
        return self.text.upper() if self.kind in ("word", "mark") else ""

    @property
    def folded(self) -> str:
        """As it is compared: a quoted name as it is, all else in small letters."""
        return self.name if self.kind == "quoted" else self.text.lower()

    @property
    def name(self) -> str:
        if self.kind != "quoted":
            return self.text.lower()
        quote = self.text[0]
        return self.text[1:-1].replace(quote * 2, quote)


def find_words(text: Text, words: Sequence[str]) -> Location | None:
    """The place of the first of these words that is in the text. A word may be several, one after the other."""
    tokens = tokens_of(text.sql)
    for phrase in words:
        wanted = [token.text.lower() for token in tokens_of(phrase)]
        for index in range(len(tokens) - len(wanted) + 1):
            span = tokens[index : index + len(wanted)]
            if wanted and [token.folded for token in span] == wanted:
                return text.locate(span[0].start)
    return None


def tokens_of(sql: str) -> list[Token]:
    """The tokens of a query without space and comments."""
    return [
        Token(str(match.lastgroup), match.group(), match.start())
        for match in _TOKEN.finditer(sql)
        if match.lastgroup != "space"
    ]
