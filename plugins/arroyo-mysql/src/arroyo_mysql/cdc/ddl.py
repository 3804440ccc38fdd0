"""What statements of the binlog do to a table, as far as its rows change without a row event. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from arroyo_mysql.names import TableName

#: What has no end goes on to that of the statement: to look for it again from each place would take for ever.
_TOKENS = re.compile(
    r"""(?P<space>\s+|--[ \t][^\n]*|\#[^\n]*|/\*(?![!M])(?:[^*]|\*(?!/))*+(?:\*/|\Z)|/\*M?!\d*|\*/)
    |(?P<name>`(?:[^`]|``)*+(?:`|\Z))
    |(?P<text>'(?:[^'\\]|\\.|'')*+(?:'|\\?\Z)|"(?:[^"\\]|\\.|"")*+(?:"|\\?\Z))
    |(?P<word>[\w$\u0080-\uffff]+)
    |(?P<mark>.)""",
    re.DOTALL | re.VERBOSE,
)
_ROWS = frozenset({"INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD"})
#: What may be at the end of ALTER TABLE ... PARTITION and takes rows away without a word.
_PARTITIONS = frozenset({"DROP", "TRUNCATE", "EXCHANGE", "CONVERT", "DISCARD", "IMPORT"})


class Effect(StrEnum):
    """What happened to the table."""

    #: All its rows are gone.
    TRUNCATED = "truncated"
    #: It is gone, is called otherwise, or another one has its name.
    REPLACED = "replaced"
    #: Rows of a partition are gone.
    PARTITION = "partition"
    #: Rows were changed by a statement that the binlog has instead of the rows.
    STATEMENT = "statement"


IsNamed = Callable[[TableName], bool]


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    #: Whether it may be a name.
    is_name: bool
    is_quoted: bool

    @property
    def word(self) -> str:
        """In upper case; empty for what cannot be a keyword."""
        return "" if self.is_quoted else self.text.upper()


def effect_of(statement: str, schema: str, table: TableName, *, folds_case: bool) -> Effect | None:
    """What a statement does to the table; `schema` is the database that was the default. None for nothing.

    `folds_case` says that names of tables are equal whatever their case.
    """
    tokens = _read(statement)
    words = [token.word for token in tokens[:4]]
    first = words[0] if words else ""

    def is_named(name: TableName) -> bool:
        if folds_case:
            return (name.schema.lower(), name.name.lower()) == (table.schema.lower(), table.name.lower())
        return name == table

    if first == "TRUNCATE":
        found = _name_at(tokens, 2 if words[1:2] == ["TABLE"] else 1, schema)
        return Effect.TRUNCATED if found and is_named(found[0]) else None
    names = _names(tokens, schema)
    if first == "DROP":
        return _drop(tokens, names, table, is_named, folds_case=folds_case)
    if first in ("RENAME", "CREATE"):
        is_replacing = first == "RENAME" or words[1:4] == ["OR", "REPLACE", "TABLE"]
        return Effect.REPLACED if is_replacing and any(map(is_named, _heads(first, tokens, names, schema))) else None
    if first == "ALTER":
        return _alter(tokens, schema, is_named)
    if first in _ROWS and any(map(is_named, names)):
        return Effect.STATEMENT
    return None


def _drop(
    tokens: Sequence[_Token], names: Sequence[TableName], table: TableName, is_named: IsNamed, *, folds_case: bool
) -> Effect | None:
    words = [token.word for token in tokens]
    if words[1:2] in (["DATABASE"], ["SCHEMA"]):
        last = tokens[-1].text if tokens[-1].text != ";" else tokens[-2].text
        is_same = last.lower() == table.schema.lower() if folds_case else last == table.schema
        return Effect.REPLACED if is_same else None
    if words[1:2] != ["TABLE"]:
        return None  # of a temporary table, an index, a view
    return Effect.REPLACED if any(is_named(name) for name in names) else None


def _heads(first: str, tokens: Sequence[_Token], names: Sequence[TableName], schema: str) -> Sequence[TableName]:
    """The tables that a statement makes or renames."""
    if first == "RENAME":
        return names
    at = 4
    if [token.word for token in tokens[at : at + 3]] == ["IF", "NOT", "EXISTS"]:
        at += 3
    found = _name_at(tokens, at, schema)
    return [found[0]] if found else []


def _alter(tokens: Sequence[_Token], schema: str, is_named: IsNamed) -> Effect | None:
    words = [token.word for token in tokens]
    if "TABLE" not in words[:4]:
        return None
    at = words.index("TABLE") + 1
    if words[at : at + 2] == ["IF", "EXISTS"]:
        at += 2
    found = _name_at(tokens, at, schema)
    if found is None:
        return None
    name, at = found
    for place in range(at, len(words)):
        following = words[place + 1] if place + 1 < len(words) else ""
        if words[place] == "RENAME" and following not in ("COLUMN", "INDEX", "KEY"):
            to = _name_at(tokens, place + (2 if following in ("TO", "AS", "=") else 1), schema)
            if is_named(name) or (to and is_named(to[0])):
                return Effect.REPLACED
        if is_named(name) and words[place] in _PARTITIONS and following in ("PARTITION", "TABLESPACE", "TABLE"):
            return Effect.PARTITION
        if words[place] == "EXCHANGE" and "TABLE" in words[place:]:
            other = _name_at(tokens, words.index("TABLE", place) + 1, schema)
            if other and is_named(other[0]):
                return Effect.REPLACED
    return None


def _read(statement: str) -> list[_Token]:
    found = []
    for match in _TOKENS.finditer(statement):
        text = match[0]
        if match.lastgroup == "name":
            found.append(_Token(text[1:-1].replace("``", "`"), True, True))
        elif match.lastgroup == "text":
            # With ANSI_QUOTES a name may be in double quotes.
            found.append(_Token(text[1:-1].replace('""', '"'), text.startswith('"'), True))
        elif match.lastgroup in ("word", "mark"):
            found.append(_Token(text, match.lastgroup == "word", False))
    return found


def _name_at(tokens: Sequence[_Token], at: int, schema: str) -> tuple[TableName, int] | None:
    """The table that is named there, and where the name ends."""
    if at >= len(tokens) or not tokens[at].is_name:
        return None
    if at + 2 < len(tokens) and tokens[at + 1].text == "." and tokens[at + 2].is_name:
        return TableName(tokens[at].text, tokens[at + 2].text), at + 3
    return TableName(schema, tokens[at].text), at + 1


def _names(tokens: Sequence[_Token], schema: str) -> list[TableName]:
    """All that may be names of tables."""
    found, at = [], 0
    while at < len(tokens):
        name = _name_at(tokens, at, schema)
        if name is None:
            at += 1
        else:
            found.append(name[0])
            at = name[1]
    return found
