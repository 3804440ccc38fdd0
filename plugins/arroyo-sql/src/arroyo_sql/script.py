"""What a SQL script says, statement by statement, each with its place. Queries stay text: the planner reads them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from arroyo_core.errors import Location


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of SQL, with its place in the file.

    `sql` is what the planner parses: `${parameters}` in it are replaced by literals. `shifts` say how far the text
    that was written is ahead: pairs of an offset in `sql` and what to add to it, from there on. `written` is the
    piece as it stands in the file, where it differs.
    """

    sql: str
    #: Of its first character.
    at: Location
    written: str | None = None
    shifts: tuple[tuple[int, int], ...] = ()

    def locate(self, offset: int) -> Location:
        """The place in the file of the character `offset` of `sql`; offsets count from 0 and may be at the end."""
        text = self.sql if self.written is None else self.written
        offset = max(0, min(offset, len(self.sql)))
        index = bisect_right(self.shifts, offset, key=lambda shift: shift[0]) - 1
        before = text[: offset + (self.shifts[index][1] if index >= 0 else 0)]
        lines = before.count("\n")
        last = len(before) - (before.rfind("\n") + 1)
        return Location(self.at.file, self.at.line + lines, last + 1 if lines else self.at.column + last)

    def locate_in_lines(self, line: int, column: int) -> Location:
        """The place of a line and column of `sql`, which count from 1, as DataFusion's messages do."""
        lines = self.sql.split("\n")
        before = lines[: max(line - 1, 0)]
        return self.locate(sum(len(text) + 1 for text in before) + max(column - 1, 0))


@dataclass(frozen=True, slots=True)
class Column:
    """A declared column. `generated` is the expression that computes it, `metadata` what of a message it holds."""

    name: str
    type: pa.DataType
    at: Location
    type_at: Location
    not_null: bool = False
    primary_key: bool = False
    generated: Text | None = None
    metadata: str | None = None
    metadata_at: Location | None = None


#: A value of `WITH (...)` or of `SET`. An interval is the text of a duration: `90s`.
OptionValue: TypeAlias = "str | int | float | bool | list[OptionValue]"


@dataclass(frozen=True, slots=True)
class Option:
    """`key = value` of a `WITH (...)`; `at` is the place of the value."""

    key: str
    value: OptionValue
    at: Location
    key_at: Location
    #: The value as written in the file where it has `${references}` and is a string.
    written: str | None = None
    #: Whether the value came out of the environment: it must not be shown.
    is_secret: bool = False


@dataclass(frozen=True, slots=True)
class Watermark:
    """`WATERMARK FOR column [AS expression]`."""

    column: str
    expression: Text | None
    at: Location


@dataclass(frozen=True, slots=True)
class Table:
    """A `CREATE TABLE`. Without options it is a memory table: what is inserted into it is what is read from it.

    `query` is that of `CREATE TABLE ... AS`, which also inserts.
    """

    name: str
    at: Location
    columns: tuple[Column, ...] = ()
    options: Mapping[str, Option] = field(default_factory=dict)
    watermark: Watermark | None = None
    primary_key: tuple[str, ...] = ()
    query: Text | None = None
    is_temporary: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """A `CREATE VIEW`. `columns` rename those of the query, where there are any."""

    name: str
    at: Location
    query: Text
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Insert:
    """An `INSERT INTO`, or a bare query, whose target is None: it is printed. `columns` are those it names."""

    target: str | None
    at: Location
    query: Text
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Setting:
    """`SET name = value`; `at` is the place of the value. Names are in lower case, with dots."""

    name: str
    value: OptionValue
    at: Location
    name_at: Location
    written: str | None = None
    is_secret: bool = False


@dataclass(frozen=True, slots=True)
class Bundle:
    """`CREATE FUNCTION [name] FROM 'url'`: a bundle of user functions. Without a name, all of its functions."""

    name: str | None
    at: Location
    url: Option
    options: Mapping[str, Option] = field(default_factory=dict)


Statement: TypeAlias = Table | View | Insert | Setting | Bundle


@dataclass(frozen=True, slots=True)
class Script:
    """The statements of one file, in order."""

    file: str
    statements: tuple[Statement, ...]

    @property
    def settings(self) -> tuple[Setting, ...]:
        return tuple(statement for statement in self.statements if isinstance(statement, Setting))
