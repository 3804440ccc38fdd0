"""Queries as trees that are written in either dialect, and made smaller."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias


class Dialect(Enum):
    OURS = 0
    DUCKDB = 1


class Type(Enum):
    INT = "int"
    FLOAT = "float"
    DECIMAL = "decimal"
    TEXT = "text"
    BOOL = "bool"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Expr:
    """An expression: a template with its arguments in braces, and another one where DuckDB writes it otherwise."""

    type: Type
    template: str
    args: tuple[Expr, ...] = ()
    duckdb: str | None = None

    @property
    def has_columns(self) -> bool:
        """Whether it depends on a row: what does not is no key of a GROUP BY, where numbers are those of columns."""
        return self.is_column or any(arg.has_columns for arg in self.args)

    @property
    def is_column(self) -> bool:
        alias, dot, _ = self.template.partition(".")
        return bool(dot) and alias.isidentifier()

    def text(self, dialect: Dialect) -> str:
        is_other = dialect is Dialect.DUCKDB and self.duckdb is not None
        template = self.duckdb if is_other else self.template
        assert template is not None
        return template.format(*(arg.text(dialect) for arg in self.args))


@dataclass(frozen=True, slots=True)
class Output:
    """A column of a result."""

    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Table:
    """A table of `tables.py`, by an alias."""

    name: str
    alias: str

    def text(self, dialect: Dialect) -> str:
        return f"{self.name} AS {self.alias}"


@dataclass(frozen=True, slots=True)
class Derived:
    """A query in FROM."""

    query: Query
    alias: str

    def text(self, dialect: Dialect) -> str:
        return f"({self.query.text(dialect)}) AS {self.alias}"


@dataclass(frozen=True, slots=True)
class Join:
    """Two relations, an equality, and what else must hold of two rows."""

    kind: str
    left: Relation
    right: Relation
    equality: Expr
    residual: Expr | None = None

    def text(self, dialect: Dialect) -> str:
        kind = self.kind.removeprefix("LEFT ") if dialect is Dialect.DUCKDB and self.is_half else self.kind
        on = self.equality.text(dialect)
        if self.residual is not None:
            on += f" AND {self.residual.text(dialect)}"
        return f"{self.left.text(dialect)} {kind} JOIN {self.right.text(dialect)} ON {on}"

    @property
    def is_half(self) -> bool:
        """Whether only the left side has columns in the result."""
        return self.kind in ("LEFT SEMI", "LEFT ANTI")


@dataclass(frozen=True, slots=True)
class Window:
    """The window of a GROUP BY over a stream in time, in seconds; a slide of 0 is that of tumbling windows."""

    table: Table
    time: str
    slide_s: int
    size_s: int


Relation: TypeAlias = Table | Derived | Join


@dataclass(frozen=True, slots=True)
class Select:
    """One SELECT. With `keys` it is a GROUP BY, whose outputs are keys and aggregates; None has no groups."""

    relation: Relation
    outputs: tuple[Output, ...]
    where: Expr | None = None
    is_distinct: bool = False
    keys: tuple[Expr, ...] | None = None
    having: Expr | None = None

    def text(self, dialect: Dialect) -> str:
        columns = ", ".join(f"{each.value.text(dialect)} AS {each.name}" for each in self.outputs)
        text = f"SELECT {'DISTINCT ' if self.is_distinct else ''}{columns} FROM {self.relation.text(dialect)}"
        if self.where is not None:
            text += f" WHERE {self.where.text(dialect)}"
        if self.keys:
            text += f" GROUP BY {', '.join(key.text(dialect) for key in self.keys)}"
        if self.having is not None:
            text += f" HAVING {self.having.text(dialect)}"
        return text


@dataclass(frozen=True, slots=True)
class Windowed:
    """Groups of a window: the start of the window as the column `ws`, keys, and aggregates."""

    window: Window
    outputs: tuple[Output, ...]
    keys: tuple[Expr, ...] = ()
    where: Expr | None = None
    having: Expr | None = None

    def text(self, dialect: Dialect) -> str:
        return self._duckdb() if dialect is Dialect.DUCKDB else self._ours()

    def _ours(self) -> str:
        window = self.window
        call = f"tumble(INTERVAL '{window.size_s} seconds')"
        if window.slide_s:
            call = f"hop(INTERVAL '{window.slide_s} seconds', INTERVAL '{window.size_s} seconds')"
        text = f"SELECT {call} AS win, {self._columns(Dialect.OURS)} FROM {window.table.text(Dialect.OURS)}"
        text += self._clauses(Dialect.OURS, "win")
        names = "".join(f", t.{each.name} AS {each.name}" for each in self.outputs)
        return f"SELECT t.win.start AS ws{names} FROM ({text}) AS t"

    def _duckdb(self) -> str:
        window = self.window
        step = window.slide_s or window.size_s
        first = f"time_bucket(INTERVAL '{step} seconds', {window.time})"
        starts = (
            f"unnest(generate_series({first} - INTERVAL '{window.size_s - step} seconds', {first}, "
            f"INTERVAL '{step} seconds'))"
        )
        rows = f"(SELECT *, {starts} AS ws FROM {window.table.name}) AS {window.table.alias}"
        return f"SELECT ws, {self._columns(Dialect.DUCKDB)} FROM {rows}" + self._clauses(Dialect.DUCKDB, "ws")

    def _columns(self, dialect: Dialect) -> str:
        return ", ".join(f"{each.value.text(dialect)} AS {each.name}" for each in self.outputs)

    def _clauses(self, dialect: Dialect, window: str) -> str:
        where = f" WHERE {self.where.text(dialect)}" if self.where is not None else ""
        having = f" HAVING {self.having.text(dialect)}" if self.having is not None else ""
        return f"{where} GROUP BY {', '.join([window, *(key.text(dialect) for key in self.keys)])}{having}"


@dataclass(frozen=True, slots=True)
class Union:
    """Rows of two queries; `kind` is UNION, UNION ALL, INTERSECT or EXCEPT."""

    kind: str
    left: Query
    right: Query

    def text(self, dialect: Dialect) -> str:
        return f"{self.left.text(dialect)} {self.kind} {self.right.text(dialect)}"


@dataclass(frozen=True, slots=True)
class Order:
    """A column of an ORDER BY, and how it goes: `DESC NULLS LAST`, or nothing."""

    column: str
    direction: str


@dataclass(frozen=True, slots=True)
class Top:
    """The first rows of each partition of a query, in an order by all of its columns: others are equal."""

    query: Query
    names: tuple[str, ...]
    partition: tuple[str, ...]
    order: tuple[Order, ...]
    count: int

    def text(self, dialect: Dialect) -> str:
        names = ", ".join(self.names)
        order = ", ".join(f"{each.column} {each.direction}".strip() for each in self.order)
        by = f"PARTITION BY {', '.join(self.partition)} " if self.partition else ""
        ranked = (
            f"SELECT {names}, row_number() OVER ({by}ORDER BY {order}) AS place FROM ({self.query.text(dialect)}) AS r"
        )
        return f"SELECT {names} FROM ({ranked}) AS u WHERE place <= {self.count}"


Query: TypeAlias = Select | Windowed | Union | Top


@dataclass(frozen=True, slots=True)
class Column:
    """What an expression may refer to."""

    name: str
    type: Type

    def of(self, alias: str) -> Expr:
        return Expr(self.type, f"{alias}.{self.name}")


def columns_of(query: Query) -> tuple[Column, ...]:
    """The columns of the result."""
    match query:
        case Select():
            return tuple(Column(each.name, each.value.type) for each in query.outputs)
        case Windowed():
            return (Column("ws", Type.TIME), *(Column(each.name, each.value.type) for each in query.outputs))
        case Union():
            return columns_of(query.left)
        case Top():
            return columns_of(query.query)
