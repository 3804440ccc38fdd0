"""`${NAME}` in scripts: parameters and variables of the environment, which stay values wherever they stand.

Between quotes a value is the content of that text or name, with quotes doubled. Elsewhere it must be a number or a
plain name; only what the file itself says, the default of a parameter, may be any piece of SQL there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from arroyo_core.pipeline.environment import REFERENCE
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.pipeline.substitution import References, Resolved
from arroyo_sql.lexer import Kind, SourceText, Token
from arroyo_sql.script import Text

_PLAIN = re.compile(r"[+-]?[0-9]++(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|[^\W\d]\w*+(?:\.\w++)*+")
_LEAST_SECRET = 4


@dataclass(slots=True)
class Substitution:
    """Replaces references in tokens of a script; what cannot be replaced is recorded."""

    source: SourceText
    references: References
    mistakes: Mistakes
    #: Whether some parameter has no value that can be used, for which a mistake is recorded elsewhere.
    is_missing: bool = False
    #: Values of the environment inside of queries, with what was written for each.
    _values: dict[str, str] = field(default_factory=dict)

    def conceal(self, text: str) -> str:
        """The text with the values that queries have of the environment as they were written."""
        for value, written in sorted(self._values.items(), key=lambda item: -len(item[0])):
            text = text.replace(value, written)
        return text

    def resolve(self, text: str, token: Token) -> Resolved:
        """A text of the token with its references replaced."""

        def report(message: str, reference: str, suggestion: str | None) -> None:
            found = max(token.text.find(reference), 0)
            self.mistakes.add(message, at=self.source.at(token.start + found), value=reference, suggestion=suggestion)

        resolved = self.references.resolve(text, report)
        self.is_missing |= resolved.is_missing
        return resolved

    def piece(self, tokens: Sequence[Token], start: int, end: int) -> Text:
        """The text from `start` to `end`, in which these tokens are, as the planner gets it."""
        written = self.source.text[start:end]
        parts: list[str] = []
        shifts: list[tuple[int, int]] = []
        size, at = 0, start
        for token in tokens:
            if "$" not in token.text or (replaced := self._replaced(token)) == token.text:
                continue
            between = self.source.text[at : token.start]
            parts += (between, replaced)
            size += len(between) + len(replaced)
            at = token.end
            shifts.append((size, (at - start) - size))
        if not shifts:
            return Text(written, self.source.at(start))
        sql = "".join([*parts, self.source.text[at:end]])
        return Text(sql, self.source.at(start), written, tuple(shifts))

    def _replaced(self, token: Token) -> str:
        if token.kind is Kind.REFERENCE:
            return self._outside(token)
        is_verbatim = token.kind is Kind.STRING and token.text[0] == "$"
        if is_verbatim or token.kind not in (Kind.STRING, Kind.QUOTED):
            return token.text
        quote = token.text[-1]

        def value_of(match: re.Match[str]) -> str:
            value = self._noted(self.resolve(match.group(), token))
            problem = _problem_inside(value, has_escapes=token.escape == "E")
            if problem:
                self._refuse(match.group(), problem, token.start + match.start())
            return value.replace(quote, quote * 2)

        return REFERENCE.sub(value_of, token.text)

    def _noted(self, resolved: Resolved) -> str:
        """The text of a value. One of a few letters is in all texts: to hide it there would hide nothing."""
        if resolved.is_substituted and len(resolved.text) >= _LEAST_SECRET:
            self._values[resolved.text] = resolved.written
            self._values[resolved.text.replace("'", "''")] = resolved.written
        return resolved.text

    def _outside(self, token: Token) -> str:
        resolved = self.resolve(token.text, token)
        match = REFERENCE.fullmatch(token.text)
        value = self.references.parameters.get(match["name"]) if match and match["name"] else None
        if resolved.is_missing:
            return "NULL"
        is_own = value is not None and not value.is_given and not resolved.is_substituted
        if "\0" in resolved.text or (not is_own and not _PLAIN.fullmatch(resolved.text)):
            problem = (
                "is neither a number nor a plain name, and stands outside of quotes: "
                f"write '{token.text}' where it is a text"
            )
            if not resolved.text.startswith("${"):
                self._refuse(token.text, problem, token.start)
            return "NULL"
        self._noted(resolved)
        # A minus sign before it must not make a comment.
        return f" {resolved.text} " if resolved.text.startswith("-") else resolved.text

    def _refuse(self, reference: str, problem: str, offset: int) -> None:
        self.mistakes.add(f"the value of {reference} {problem}", at=self.source.at(offset), value=reference)


def _problem_inside(value: str, *, has_escapes: bool) -> str:
    if "\0" in value:
        return "has a character that SQL cannot hold"
    if has_escapes and "\\" in value:
        return "has a backslash, inside a text where it would not be one"
    return ""
