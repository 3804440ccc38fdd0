"""What a part of a query gives: the rows of a node, and what the query calls its columns."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import pyarrow as pa
from datafusion import Expr

from arroyo_sql.planner.sql_types import WINDOW
from arroyo_sql.script import Table

WINDOW_COLUMNS = ("window_start", "window_end", "window_time")
#: Marks the rows of an updating stream as added or taken back.
UPDATING_META = "_updating_meta"

#: Plain names that mean something else in an expression.
_WORDS = frozenset(
    [
        "all",
        "and",
        "any",
        "as",
        "asc",
        "between",
        "by",
        "case",
        "cast",
        "count",
        "current_date",
        "current_time",
        "current_timestamp",
        "date",
        "day",
        "desc",
        "distinct",
        "else",
        "end",
        "escape",
        "except",
        "exists",
        "false",
        "filter",
        "for",
        "from",
        "full",
        "group",
        "having",
        "hour",
        "ilike",
        "in",
        "inner",
        "intersect",
        "interval",
        "is",
        "join",
        "key",
        "left",
        "like",
        "limit",
        "localtime",
        "max",
        "min",
        "month",
        "not",
        "null",
        "offset",
        "on",
        "or",
        "order",
        "outer",
        "over",
        "partition",
        "position",
        "rank",
        "right",
        "row",
        "row_number",
        "rows",
        "select",
        "similar",
        "some",
        "start",
        "sum",
        "table",
        "then",
        "time",
        "timestamp",
        "to",
        "true",
        "try_cast",
        "union",
        "unnest",
        "user",
        "values",
        "when",
        "where",
        "window",
        "with",
        "year",
        "minute",
        "second",
        "avg",
        "struct",
        "array",
        "map",
        "extract",
        "substring",
        "trim",
        "overlay",
    ]
)


def quote(name: str) -> str:
    """A column as SQL has it, in quotes where it needs them."""
    is_plain = re.fullmatch(r"[a-z_][a-z0-9_]*", name) is not None and name not in _WORDS
    return name if is_plain else '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True)
class Window:
    """A window that rows are in; `start` and `end` are SQL of its ends. `slide_us` is set where windows overlap."""

    kind: str
    size_us: int
    slide_us: int | None = None
    start: str = "window_start"
    end: str = "window_end"

    @property
    def spec(self) -> tuple[str, int, int | None]:
        """What two windows must share to be the same one."""
        return self.kind, self.size_us, self.slide_us

    @property
    def struct_sql(self) -> str:
        return f"named_struct('start', {self.start}, 'end', {self.end})"


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a query: SQL over the columns of its node, and `column` where it is one of them as it is."""

    qualifier: str | None
    name: str
    sql: str
    type: pa.DataType | None = None
    column: str | None = None
    #: Set where the value is a window: a struct of its two ends.
    window: Window | None = None

    @classmethod
    def of_column(cls, column: str, kind: pa.DataType, *, name: str, qualifier: str | None = None) -> Field:
        return cls(qualifier, name, quote(column), kind, column)

    @classmethod
    def of_window(cls, window: Window, *, name: str, qualifier: str | None = None) -> Field:
        return cls(qualifier, name, window.struct_sql, WINDOW, None, window)

    def named(self, name: str, qualifier: str | None = None) -> Field:
        return replace(self, name=name, qualifier=qualifier)


@dataclass(frozen=True, slots=True)
class Ranking:
    """A rank among the rows of a group, not computed yet: a condition on it may make it the first rows only."""

    function: str
    #: The column that it becomes, under which fields know it already.
    column: str
    partition_by: tuple[str, ...]
    order_by: tuple[tuple[str, bool, bool], ...]
    #: SQL of the function with OVER.
    sql: str
    is_windowed: bool
    #: The `updating_ttl` where the function stands.
    ttl: str | None = None


@dataclass(frozen=True, slots=True)
class Relation:
    """The rows of `node`. `time` is the column of their event time.

    `window` is set where rows are in windows, whose columns the node has. `virtual` is a window that rows are put
    into by a table function, `ranking` a rank: the node does not have their columns yet. `lookup` is a table that is
    looked up: there is no node. `pending` are conditions that what reads the relation has to make: on windows, or on
    a lookup.
    """

    node: str
    fields: tuple[Field, ...]
    time: str | None
    is_updating: bool = False
    window: Window | None = None
    virtual: Window | None = None
    ranking: Ranking | None = None
    lookup: Table | None = None
    #: Whether windows are of the time at which rows arrive.
    is_by_clock: bool = False
    pending: tuple[Expr, ...] = ()

    def qualified(self, name: str) -> Relation:
        return replace(self, fields=tuple(replace(field, qualifier=name) for field in self.fields))
