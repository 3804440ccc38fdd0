"""`->`, `->>` and `?` over JSON texts, and places in them of several keys: written as calls of functions of two.

The parser of SQL knows the operators, in some dialects, but nothing can be planned of them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter

from arroyo_core.errors import ConfigError
from arroyo_std.json_functions import JSON_FUNCTIONS

_OPERATORS = {"->": "json_get", "->>": "json_as_text", "?": "json_contains"}
_TOKEN = re.compile(
    r"""(?P<blank>\s+|--[^\n]*|/\*.*?\*/)|(?P<text>[eE]?'(?:[^']|'')*')|(?P<word>"(?:[^"]|"")*"|[^\W\d][\w$]*)
      |(?P<number>\d[\w.]*)|(?P<operator>->>|->|::|\?(?![|&]))|(?P<other>.)""",
    re.DOTALL | re.VERBOSE,
)
#: Words that stand before a bracket, or before an operand, without being the name of a function.
_NO_NAMES = frozenset(
    re.findall(
        r"\w+",
        "and or not in is like ilike between case when then else where select on by having exists any all as from "
        "distinct filter over union",
    )
)
_OPENED = {")": "(", "]": "["}
_CLOSED = {"(": ")", "[": "]"}


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    kind: str
    #: Where it stands in what was written; of what was added where the operator stands that it is for.
    at: int


@dataclass(frozen=True, slots=True)
class PlainSql:
    """SQL without operators over JSON, and where each of its parts comes from."""

    sql: str
    #: Where each part starts, where it was written, and whether it is as it was written.
    _parts: tuple[tuple[int, int, bool], ...] = ()

    def original_offset(self, offset: int) -> int:
        """Where a character of `sql` was written, or the operator or the call that it was made of."""
        if not self._parts:
            return offset
        start, origin, is_kept = self._parts[max(0, bisect_right(self._parts, offset, key=itemgetter(0)) - 1)]
        return origin + (offset - start if is_kept else 0)


def plain_sql(sql: str, *, field: str | None = None) -> PlainSql:
    """The SQL with calls in place of operators; as it is where there are none, or what they join cannot be read.

    Operators bind more tightly than all others: `a -> 'b' || 'c'` is `(a -> 'b') || 'c'`.
    Raises `ConfigError` at `field` for a cast of a key, which is hardly what is meant.
    """
    try:
        return _plain_sql(sql)
    except ConfigError as error:
        raise ConfigError(error.message, field=field, value=sql) from error


@lru_cache(maxsize=1024)
def _plain_sql(sql: str) -> PlainSql:
    if not any(each in sql for each in ("->", "?", "json_")):
        return PlainSql(sql)
    tokens = [_Token(found.group(), found.lastgroup or "other", found.start()) for found in _TOKEN.finditer(sql)]
    is_changed = _replace_operators(tokens, sql)
    is_changed = _nest_calls(tokens) or is_changed
    if not is_changed:
        return PlainSql(sql)
    parts, length = [], 0
    for token in tokens:
        parts.append((length, token.at, sql.startswith(token.text, token.at)))
        length += len(token.text)
    return PlainSql("".join(token.text for token in tokens), tuple(parts))


def _replace_operators(tokens: list[_Token], sql: str) -> bool:
    is_changed = False
    at = 0
    while at < len(tokens):
        token = tokens[at]
        function = _OPERATORS.get(token.text) if token.kind == "operator" else None
        start = _operand_start(tokens, at - 1) if function else None
        end = _operand_end(tokens, at + 1, sql) if start is not None else None
        if function is None or start is None or end is None:
            at += 1
            continue
        place = token.at
        call = [_Token(function, "word", place), _Token("(", "other", place), *tokens[start:at]]
        call += [_Token(",", "other", place), *tokens[at + 1 : end], _Token(")", "other", place)]
        tokens[start:end] = call
        is_changed = True
        at = start + len(call)
    return is_changed


def _operand_start(tokens: list[_Token], last: int) -> int | None:
    """Where the operand begins that ends at this token or before it."""
    at = _back(tokens, last)
    while at >= 0:
        token = tokens[at]
        if token.text in _OPENED:
            opened = _opening(tokens, at)
            if opened is None:
                return None
            before = _back(tokens, opened - 1)
            if token.text == "]":
                at = before
                continue
            at = before if before >= 0 and _is_name(tokens[before]) else opened
        elif token.kind == "word" and token.text.lower() == "end":
            return _case_start(tokens, at)
        elif token.kind not in ("word", "text", "number") or (token.kind == "word" and not _is_name(token)):
            return None
        before = _back(tokens, at - 1)
        if before >= 0 and tokens[before].text in (".", "::"):
            at = _back(tokens, before - 1)
            continue
        return at
    return None


def _operand_end(tokens: list[_Token], first: int, sql: str) -> int | None:
    """Behind the last token of the operand that begins at this one or after it."""
    at = _forth(tokens, first)
    if at < len(tokens) and tokens[at].text == "-":
        at = _forth(tokens, at + 1)
    if at >= len(tokens) or (tokens[at].kind not in ("word", "text", "number") and tokens[at].text != "("):
        return None
    end: int | None = at + 1
    if tokens[at].text == "(":
        end = _closing(tokens, at)
    while end is not None:
        following = _forth(tokens, end)
        if following >= len(tokens):
            return end
        token = tokens[following]
        if token.text == "::":
            _refuse_cast(tokens, at, end, sql)
        if token.text == "." and tokens[at].kind == "word":
            end = min(_forth(tokens, following + 1) + 1, len(tokens))
        elif token.text == "[" or (token.text == "(" and _is_name(tokens[end - 1])):
            end = _closing(tokens, following)
        else:
            return end
    return None


def _refuse_cast(tokens: list[_Token], start: int, end: int, sql: str) -> None:
    key = "".join(token.text for token in tokens[start:end])
    raise ConfigError(f"'::' after {key} would cast the key, not what is found: put brackets before '::'", value=sql)


def _nest_calls(tokens: list[_Token]) -> bool:
    """Write `f(json, a, b)` as `f(json_get(json, a), b)`, and `f(json, a)` of a function of the text alone likewise.

    Whether there is a value is known where what it would be in is not there: it is not.
    """
    is_changed = False
    for at in range(len(tokens) - 1, -1, -1):
        function = JSON_FUNCTIONS.get(tokens[at].text.lower()) if tokens[at].kind == "word" else None
        opened = _forth(tokens, at + 1)
        if function is None or function.place == "path" or opened >= len(tokens) or tokens[opened].text != "(":
            continue
        end = _closing(tokens, opened)
        commas = _commas(tokens, opened, end) if end is not None else []
        surplus = len(commas) - (1 if function.place else 0)
        if surplus <= 0:
            continue
        is_changed = True
        # The last of these commas stands behind the innermost text and the keys that lead to it.
        place = tokens[at].at
        for comma in reversed(commas[:surplus]):
            behind = _next_comma(tokens, comma, end)
            tokens.insert(behind, _Token(")", "other", place))
            end = None if end is None else end + 1
        step = "json_get_or_empty" if function.name == "json_contains" else "json_get"
        head = [_Token(step, "word", place), _Token("(", "other", place)]
        tokens[opened + 1 : opened + 1] = head * surplus
    return is_changed


def _commas(tokens: list[_Token], opened: int, end: int | None) -> list[int]:
    found, depth = [], 0
    for at in range(opened, len(tokens) if end is None else end):
        text = tokens[at].text
        depth += (text in _CLOSED) - (text in _OPENED)
        if text == "," and depth == 1:
            found.append(at)
    return found


def _next_comma(tokens: list[_Token], comma: int, end: int | None) -> int:
    """Where the argument after this comma ends."""
    depth = 0
    for at in range(comma + 1, len(tokens) if end is None else end):
        text = tokens[at].text
        if depth == 0 and (text == "," or text in _OPENED):
            return at
        depth += (text in _CLOSED) - (text in _OPENED)
    return len(tokens)


def _is_name(token: _Token) -> bool:
    return token.kind == "word" and (token.text.startswith('"') or token.text.lower() not in _NO_NAMES)


def _back(tokens: list[_Token], at: int) -> int:
    while at >= 0 and tokens[at].kind == "blank":
        at -= 1
    return at


def _forth(tokens: list[_Token], at: int) -> int:
    while at < len(tokens) and tokens[at].kind == "blank":
        at += 1
    return at


def _opening(tokens: list[_Token], at: int) -> int | None:
    depth = 0
    for place in range(at, -1, -1):
        depth += (tokens[place].text in _OPENED) - (tokens[place].text in _CLOSED)
        if depth == 0:
            return place
    return None


def _closing(tokens: list[_Token], at: int) -> int | None:
    """Behind the bracket that closes this one."""
    depth = 0
    for place in range(at, len(tokens)):
        depth += (tokens[place].text in _CLOSED) - (tokens[place].text in _OPENED)
        if depth == 0:
            return place + 1
    return None


def _case_start(tokens: list[_Token], at: int) -> int | None:
    depth = 0
    for place in range(at, -1, -1):
        word = tokens[place].text.lower() if tokens[place].kind == "word" else ""
        depth += (word == "end") - (word == "case")
        if depth == 0:
            return place
    return None
