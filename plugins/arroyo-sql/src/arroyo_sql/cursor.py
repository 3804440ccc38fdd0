"""Reads the tokens of one statement, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from arroyo_core.errors import Location
from arroyo_core.pipeline.mistakes import nearest
from arroyo_sql.lexer import Kind, SourceText, Token


class StatementError(Exception):
    """What is wrong with a statement, and where. Only the parser of statements raises and handles it."""

    def __init__(
        self,
        message: str,
        *,
        at: Location,
        value: str | None = None,
        allowed: Sequence[str] = (),
        suggestion: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.at = at
        self.value = value
        self.allowed = tuple(allowed)
        self.suggestion = suggestion


@dataclass(slots=True)
class Cursor:
    """A position in the tokens of a statement. `end` is where the statement ends in the text."""

    source: SourceText
    tokens: Sequence[Token]
    end: int
    index: int = 0

    @property
    def token(self) -> Token | None:
        """The next one; None at the end of the statement."""
        return self.peek(0)

    @property
    def offset(self) -> int:
        token = self.token
        return self.end if token is None else token.start

    def peek(self, ahead: int) -> Token | None:
        index = self.index + ahead
        return self.tokens[index] if index < len(self.tokens) else None

    def at(self, offset: int | None = None) -> Location:
        return self.source.at(self.offset if offset is None else offset)

    def is_at(self, *words: str) -> bool:
        """Whether the next tokens are these keywords, given in upper case, or signs."""
        for ahead, word in enumerate(words):
            token = self.peek(ahead)
            if token is None or not (token.is_word(word) or token.is_sign(word)):
                return False
        return True

    def accept(self, *words: str) -> bool:
        """Whether the next tokens are these; then they are taken."""
        if not self.is_at(*words):
            return False
        self.index += len(words)
        return True

    def expect(self, *words: str, where: str = "") -> None:
        if not self.accept(*words):
            raise self.unexpected(" ".join(words), where=where)

    def take(self, what: str) -> Token:
        token = self.token
        if token is None:
            raise self.unexpected(what)
        self.index += 1
        return token

    def name(self, what: str) -> Token:
        token = self.token
        if token is None or not token.is_name:
            raise self.unexpected(what)
        self.index += 1
        return token

    def string(self, what: str) -> Token:
        token = self.token
        if token is None or token.kind is not Kind.STRING:
            raise self.unexpected(f"{what} in quotes")
        self.index += 1
        return token

    def unexpected(self, what: str, *, allowed: Sequence[str] = (), where: str = "") -> StatementError:
        """The mistake that the next token is not what it must be."""
        token = self.token
        found = "the end of the statement" if token is None else f"{shortened(token.text)!r}"
        near = None
        if token is not None and token.kind is Kind.WORD:
            choices = list(allowed) or [what]
            near = nearest(token.text.upper(), [choice for choice in choices if choice.replace("_", "").isalpha()])
        return StatementError(
            f"expected {what}{f' {where}' if where else ''}, not {found}",
            at=self.at(),
            value=None if token is None else shortened(token.text),
            allowed=allowed,
            suggestion=near if near and token is not None and near != token.text.upper() else None,
        )

    def skip_to(self, *signs: str) -> None:
        """Move to the next of these signs, or keywords, that is not inside of brackets; else to the end."""
        depth = 0
        while (token := self.token) is not None:
            if depth == 0 and any(token.is_sign(sign) or token.is_word(sign) for sign in signs):
                return
            if token.kind is Kind.SIGN:
                depth += token.text in "(["
                depth -= token.text in ")]" and depth > 0
            self.index += 1


def shortened(text: str) -> str:
    line = text.split("\n", 1)[0]
    return line if len(line) <= 40 and line == text else f"{line[:40]}…"
