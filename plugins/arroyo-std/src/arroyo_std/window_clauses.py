"""The OVER clauses of a SQL expression: what they partition by, and the expression with one more column in each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from arroyo_core.errors import ConfigError

_TOKEN = re.compile(
    r"""(?P<blank>\s+|--[^\n]*|/\*.*?\*/)
      | (?P<text>'(?:[^']|'')*')
      | (?P<quoted>"(?:[^"]|"")*")
      | (?P<word>[^\W\d][\w$]*)
      | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_AFTER_PARTITION = {"ORDER", "ROWS", "RANGE", "GROUPS"}


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int

    @property
    def keyword(self) -> str:
        return self.text.upper() if self.kind == "word" else ""


@dataclass(frozen=True, slots=True)
class WindowClauses:
    """An expression with its OVER clauses found.

    `partitions` has for each clause the columns it partitions by, where it names columns; other
    expressions to partition by are not in it.
    """

    sql: str
    partitions: tuple[frozenset[str], ...]
    #: Where in each clause a column can be put in front, and the words around it.
    _places: tuple[tuple[int, str, str], ...]

    def partitioned_by(self, column: str) -> str:
        """The expression with every window partitioned by this column, too."""
        quoted = '"' + column.replace('"', '""') + '"'
        parts, last = [], 0
        for place, before, after in self._places:
            parts += [self.sql[last:place], before, quoted, after]
            last = place
        return "".join([*parts, self.sql[last:]])

    def common_columns(self) -> frozenset[str]:
        """The columns that all windows are partitioned by."""
        return frozenset.intersection(*self.partitions) if self.partitions else frozenset()


def find_clauses(sql: str, *, field: str) -> WindowClauses:
    """Find the OVER clauses of an expression; raises `ConfigError` at `field` for named windows."""
    tokens = [
        _Token(match.lastgroup or "other", match[0], match.start(), match.end()) for match in _TOKEN.finditer(sql)
    ]
    tokens = [token for token in tokens if token.kind != "blank"]
    partitions: list[frozenset[str]] = []
    places: list[tuple[int, str, str]] = []
    for position, token in enumerate(tokens):
        if token.keyword != "OVER" or not _follows_call(tokens, position):
            continue
        following = tokens[position + 1 : position + 4]
        if not following or following[0].text != "(":
            raise ConfigError("a window is written in brackets after OVER; it cannot be named", field=field, value=sql)
        inner = following[1] if len(following) > 1 else None
        if inner is not None and inner.keyword == "PARTITION" and len(following) > 2:
            places.append((following[2].end, " ", ","))
            partitions.append(_columns(tokens[position + 4 :]))
        elif inner is not None and (inner.text == ")" or inner.keyword in _AFTER_PARTITION):
            places.append((following[0].end, "PARTITION BY ", " "))
            partitions.append(frozenset())
        else:
            raise ConfigError(
                "a window is written out after OVER, as (PARTITION BY ... ORDER BY ...); it cannot be named",
                field=field,
                value=sql,
            )
    return WindowClauses(sql, tuple(partitions), tuple(places))


def _follows_call(tokens: Sequence[_Token], position: int) -> bool:
    """Whether this OVER belongs to a function; elsewhere it is a column."""
    return position > 0 and (tokens[position - 1].text == ")" or tokens[position - 1].keyword == "NULLS")


def _columns(tokens: Sequence[_Token]) -> frozenset[str]:
    """The names among the items of a PARTITION BY, which begins here."""
    depth, item = 0, list[_Token]()
    found: set[str] = set()
    for token in tokens:
        if depth == 0 and (token.text in (",", ")") or token.keyword in _AFTER_PARTITION):
            if len(item) == 1 and item[0].kind in ("word", "quoted"):
                found.add(_name(item[0]))
            item = []
            if token.text != ",":
                break
            continue
        depth += {"(": 1, ")": -1, "[": 1, "]": -1}.get(token.text, 0)
        item.append(token)
    return frozenset(found)


def _name(token: _Token) -> str:
    return token.text[1:-1].replace('""', '"') if token.kind == "quoted" else token.text
