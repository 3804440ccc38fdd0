"""Columns that have to be quoted in SQL, because their names are words of SQL or no words at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

#: A name inside of these is not a column: a text, a name in quotes, a comment.
_OPAQUE = r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*.*?\*/"""


@dataclass(frozen=True, slots=True)
class Quoted:
    """SQL with some of its columns in quotes."""

    sql: str
    columns: tuple[str, ...]


def quote(name: str) -> str:
    """A column as SQL has it in quotes."""
    return '"' + name.replace('"', '""') + '"'


def quote_columns(sql: str, columns: Sequence[str]) -> Quoted:
    """The SQL with these columns in quotes, wherever they stand without; calls and fields of structs are left."""
    names = sorted((name for name in columns if name), key=len, reverse=True)
    if not names:
        return Quoted(sql, ())
    found: set[str] = set()
    written = "|".join(re.escape(name) for name in names)
    pattern = re.compile(rf"{_OPAQUE}|(?<![\w.$])(?P<name>{written})(?![\w$]|\s*\()", re.DOTALL)

    def replacement(match: re.Match[str]) -> str:
        if match["name"] is None:
            return match.group()
        found.add(match["name"])
        return quote(match["name"])

    return Quoted(pattern.sub(replacement, sql), tuple(name for name in columns if name in found))


def find_unquoted(sql: str, columns: Sequence[str], is_good: Callable[[str], bool]) -> Quoted | None:
    """The SQL with as few columns in quotes as make it good; None where quotes do not help."""
    everything = quote_columns(sql, columns)
    if not everything.columns or not is_good(everything.sql):
        return None
    needed = list(everything.columns)
    for name in everything.columns:
        fewer = [each for each in needed if each != name]
        if fewer and is_good(quote_columns(sql, fewer).sql):
            needed = fewer
    return quote_columns(sql, needed)


def columns_before_dots(sql: str, columns: Sequence[str]) -> Quoted:
    """The SQL with those columns in quotes of which it reads a field."""
    with_fields = [name for name in columns if re.search(rf"(?<![\w.$\"]){re.escape(name)}\s*\.", sql)]
    return quote_columns(sql, with_fields)
