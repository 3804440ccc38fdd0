"""Random queries: each is made from its seed and number alone."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from .expressions import Expressions
from .stream_values import TIMES, near, neighbor, order_of
from .syntax import (
    Column,
    Derived,
    Dialect,
    Expr,
    Join,
    Order,
    Output,
    Query,
    Relation,
    Select,
    Table,
    Top,
    Type,
    Union,
    Window,
    Windowed,
    columns_of,
)

INT, FLOAT, DECIMAL, TEXT, BOOL, TIME = Type

#: Of each table the columns that expressions are made of.
_TABLES: dict[str, tuple[Column, ...]] = {
    "orders": (
        Column("id", INT),
        Column("customer", TEXT),
        Column("amount", INT),
        Column("weight", FLOAT),
        Column("price", DECIMAL),
        Column("urgent", BOOL),
        Column("note", TEXT),
        Column("placed", TIME),
    ),
    "payments": (
        Column("payment", INT),
        Column("order_id", INT),
        Column("customer", TEXT),
        Column("paid", INT),
        Column("method", TEXT),
        Column("paid_at", TIME),
    ),
    "customers": (Column("customer", TEXT), Column("level", INT), Column("region", TEXT)),
    "numbers": (Column("n", INT), Column("a", INT), Column("b", INT), Column("d", FLOAT)),
    "events": (Column("e", INT), Column("kind", TEXT), Column("doc", TEXT), Column("happened", TIME)),
    "words": (Column("w", TEXT), Column("v", TEXT), Column("k", INT)),
}
#: Expressions that are lists, of rows of a table, and the type of their elements.
_LISTS: dict[str, tuple[tuple[Type, str], ...]] = {
    "orders": ((TEXT, "{}.tags"), (TEXT, "{}.tags"), (INT, "[{0}.id, {0}.amount]"), (TEXT, "[{0}.note, {0}.customer]")),
    "payments": ((INT, "[{0}.paid, {0}.order_id, 0]"),),
    "numbers": ((INT, "[{0}.a, {0}.b]"), (FLOAT, "[{0}.d]")),
    "words": ((TEXT, "[{0}.w, 'a', {0}.v]"),),
}
_JOINS = ("INNER", "INNER", "LEFT", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI")
_SETS = ("UNION ALL", "UNION ALL", "UNION", "INTERSECT", "EXCEPT")
_DIRECTIONS = ("", "DESC", "NULLS FIRST", "DESC NULLS LAST")
_WINDOWS = ((0, 5), (0, 10), (0, 60), (5, 10), (5, 20))


def make_query(seed: int, number: int) -> Query:
    """The same for the same arguments."""
    return _Generator(random.Random(f"{seed}:{number}")).query(2)


@dataclass(slots=True)
class _Generator:
    chance: random.Random
    _aliases: int = 0

    def query(self, depth: int) -> Query:
        match self.chance.randrange(16):
            case 0 | 1 | 2:
                return self.rows(depth)
            case 3 | 4 | 5 | 6:
                return self.groups(depth)
            case 7 | 8:
                return self.windowed()
            case 9:
                return self.union(depth)
            case 10:
                return self.top(depth)
            case 11:
                return self.filtered_by_query(depth)
            case 12 | 13:
                return self.neighbors()
            case 14:
                return self.unnested()
            case _:
                return self.rows_of(*self.join_in_time())

    def rows(self, depth: int) -> Select:
        return self.rows_of(*self.relation(depth))

    def rows_of(self, relation: Relation, columns: Sequence[tuple[str, Column]]) -> Select:
        expressions = Expressions(self.chance, columns)
        return Select(
            relation=relation,
            outputs=self.outputs([expressions.any(2) for _ in range(self.chance.randint(1, 4))]),
            where=self.condition(expressions, 0.6),
            is_distinct=self.chance.random() < 0.2,
        )

    def groups(self, depth: int) -> Select:
        relation, columns = self.relation(depth)
        expressions = Expressions(self.chance, columns)
        keys = tuple(dict.fromkeys(expressions.any(self.chance.choice((0, 0, 1))) for _ in range(self.count(0, 2))))
        keys = tuple(key for key in keys if key.has_columns)
        values = [*keys, *(expressions.aggregate(1) for _ in range(self.chance.randint(1, 3)))]
        self.chance.shuffle(values)
        return Select(
            relation=relation,
            outputs=self.outputs(values),
            where=self.condition(expressions, 0.4),
            keys=keys,
            having=self.having(expressions),
        )

    def windowed(self) -> Windowed:
        table, columns = self.table(self.chance.choice(list(TIMES)))
        expressions = Expressions(self.chance, columns)
        slide_s, size_s = self.chance.choice(_WINDOWS)
        keys = tuple(expressions.leaf(kind) for kind in self.chance.sample([INT, TEXT], self.count(0, 1)))
        keys = tuple(key for key in keys if key.is_column)
        return Windowed(
            window=Window(table, TIMES[table.name], slide_s, size_s),
            outputs=self.outputs([*keys, *(expressions.aggregate(1) for _ in range(self.chance.randint(1, 3)))]),
            keys=keys,
            where=self.condition(expressions, 0.4),
            having=self.having(expressions),
        )

    def neighbors(self) -> Select:
        """`lag()` and `lead()` of a stream in time, or of the results of its windows."""
        if self.chance.random() < 0.25:
            return self.neighbors_of_windows()
        table, columns = self.table(self.chance.choice(list(TIMES)))
        expressions = Expressions(self.chance, columns)
        keys = [each for kind in (INT, TEXT) for each in expressions.columns_of(kind)]
        order = order_of(self.chance, table.name, table.alias, keys)
        values = [expressions.any(1) for _ in range(self.count(1, 2))]
        for _ in range(self.count(1, 2)):
            partition = [expressions.of(self.chance.choice((INT, TEXT)), 1) for _ in range(self.count(0, 1))]
            values.append(neighbor(self.chance, expressions, [each for each in partition if each.has_columns], order))
        return Select(relation=table, outputs=self.outputs(values), where=self.condition(expressions, 0.4))

    def neighbors_of_windows(self) -> Select:
        query = self.windowed()
        derived = Derived(query, self.alias())
        expressions = Expressions(self.chance, [(derived.alias, column) for column in columns_of(query)])
        # With all of its keys, a window has one row.
        keys = [
            Expr(each.value.type, f"{derived.alias}.{each.name}") for each in query.outputs if each.value in query.keys
        ]
        values = [expressions.leaf(kind) for kind in (TIME, INT)]
        values.append(neighbor(self.chance, expressions, keys, f"{derived.alias}.ws"))
        return Select(relation=derived, outputs=self.outputs(values))

    def unnested(self) -> Select:
        table, columns = self.table(self.chance.choice(list(_LISTS)))
        expressions = Expressions(self.chance, columns)
        kind, template = self.chance.choice(_LISTS[table.name])
        values = [expressions.any(1) for _ in range(self.count(0, 2))]
        values.append(Expr(kind, f"unnest({template.format(table.alias)})"))
        return Select(
            relation=table,
            outputs=self.outputs(values),
            where=self.condition(expressions, 0.4),
            is_distinct=self.chance.random() < 0.2,
        )

    def union(self, depth: int) -> Union:
        types = [self.chance.choice((INT, TEXT, FLOAT, BOOL)) for _ in range(self.chance.randint(1, 3))]
        return Union(self.chance.choice(_SETS), self.side(types), self.side(types))

    def side(self, types: Sequence[Type]) -> Select:
        relation, columns = self.relation(0)
        expressions = Expressions(self.chance, columns)
        return Select(
            relation=relation,
            outputs=self.outputs([expressions.of(kind, 1) for kind in types]),
            where=self.condition(expressions, 0.4),
        )

    def top(self, depth: int) -> Top:
        query = self.query(depth - 1) if depth > 0 else self.rows(0)
        names = [column.name for column in columns_of(query)]
        order = self.chance.sample(names, len(names))
        return Top(
            query=query,
            names=tuple(names),
            partition=tuple(self.chance.sample(names, self.count(0, min(1, len(names))))),
            order=tuple(Order(name, self.chance.choice(_DIRECTIONS)) for name in order),
            count=self.chance.randint(1, 3),
        )

    def filtered_by_query(self, depth: int) -> Select:
        """IN, EXISTS, a scalar subquery, and their opposites."""
        relation, columns = self.relation(0)
        expressions = Expressions(self.chance, columns)
        kind = self.chance.choice((INT, TEXT))
        value = expressions.of(kind, 1)
        inner, inner_columns = self.relation(0)
        inside = Expressions(self.chance, inner_columns)
        where = self.subquery(value, inner, inside)
        if self.chance.random() < 0.3:
            where = Expr(BOOL, "{0} AND {1}", (where, expressions.of(BOOL, 1)))
        outputs = self.outputs([expressions.any(1) for _ in range(self.chance.randint(1, 3))])
        return Select(relation=relation, outputs=outputs, where=where)

    def subquery(self, value: Expr, inner: Relation, inside: Expressions) -> Expr:
        found = inside.of(value.type, 1)
        condition = inside.of(BOOL, 1)
        names = inner.text(Dialect.OURS)
        no = self.chance.choice(("", "NOT "))
        match self.chance.randrange(3):
            case 0:
                return Expr(BOOL, f"{{0}} {no}IN (SELECT {{1}} FROM {names} WHERE {{2}})", (value, found, condition))
            case 1:
                template = f"{no}EXISTS (SELECT 1 FROM {names} WHERE {{0}} = {{1}} AND {{2}})"
                return Expr(BOOL, template, (found, value, condition))
            case _:
                how = self.chance.choice(("<", ">=", "="))
                return Expr(
                    BOOL, f"{{0}} {how} (SELECT max({{1}}) FROM {names} WHERE {{2}})", (value, found, condition)
                )

    def relation(self, depth: int) -> tuple[Relation, list[tuple[str, Column]]]:
        """Something to select from, and its columns with their aliases."""
        chosen = self.chance.random()
        if depth <= 0 or chosen < 0.4:
            return self.table(self.chance.choice(list(_TABLES)))
        if chosen < 0.65:
            query = self.query(depth - 1)
            derived = Derived(query, self.alias())
            return derived, [(derived.alias, column) for column in columns_of(query)]
        return self.join(depth)

    def join(self, depth: int) -> tuple[Relation, list[tuple[str, Column]]]:
        left, left_columns = self.relation(self.chance.choice((0, 0, depth - 1)))
        right, right_columns = self.relation(0)
        # Few values in a key would make very many rows of a join.
        kinds = [kind for kind in (INT, TEXT) if {kind} <= {c.type for _, c in left_columns}]
        kinds = [kind for kind in kinds if {kind} <= {c.type for _, c in right_columns}]
        if not kinds:
            return left, left_columns
        kind = self.chance.choice(kinds)
        sides = [Expressions(self.chance, columns) for columns in (left_columns, right_columns)]
        keys = tuple(self.chance.choice(side.columns_of(kind)) for side in sides)
        both = [*left_columns, *right_columns]
        residual = Expressions(self.chance, both).of(BOOL, 1) if self.chance.random() < 0.25 else None
        if isinstance(left, Table) and isinstance(right, Table) and {left.name, right.name} <= set(TIMES):
            residual = self.with_times(left, right, residual) if self.chance.random() < 0.5 else residual
        join = Join(self.chance.choice(_JOINS), left, right, Expr(BOOL, "{0} = {1}", keys), residual)
        return join, left_columns if join.is_half else both

    def join_in_time(self) -> tuple[Relation, list[tuple[str, Column]]]:
        (left, left_columns), (right, right_columns) = (self.table(self.chance.choice(list(TIMES))) for _ in range(2))
        sides = [Expressions(self.chance, columns) for columns in (left_columns, right_columns)]
        kind = self.chance.choice((INT, TEXT))
        keys = tuple(self.chance.choice(side.columns_of(kind)) for side in sides)
        both = [*left_columns, *right_columns]
        residual = Expressions(self.chance, both).of(BOOL, 1) if self.chance.random() < 0.25 else None
        residual = self.with_times(left, right, residual)
        join = Join(self.chance.choice(_JOINS), left, right, Expr(BOOL, "{0} = {1}", keys), residual)
        return join, left_columns if join.is_half else both

    def with_times(self, left: Table, right: Table, condition: Expr | None) -> Expr:
        """The condition, and how near two rows are in time."""
        times = (Expr(TIME, f"{each.alias}.{TIMES[each.name]}") for each in (left, right))
        bounds = near(self.chance, *times)
        return bounds if condition is None else Expr(BOOL, "({0} AND {1})", (bounds, condition))

    def table(self, name: str) -> tuple[Table, list[tuple[str, Column]]]:
        """A table, and its columns with its alias."""
        table = Table(name, self.alias())
        return table, [(table.alias, column) for column in _TABLES[name]]

    def condition(self, expressions: Expressions, odds: float) -> Expr | None:
        return expressions.of(BOOL, 2) if self.chance.random() < odds else None

    def having(self, expressions: Expressions) -> Expr | None:
        if self.chance.random() < 0.75:
            return None
        how = self.chance.choice((">", "<=", "IS DISTINCT FROM"))
        return Expr(BOOL, f"{{0}} {how} {{1}}", (Expr(INT, "count(*)"), Expr(INT, self.chance.choice(("1", "3")))))

    def outputs(self, values: Sequence[Expr]) -> tuple[Output, ...]:
        return tuple(Output(f"c{number}", value) for number, value in enumerate(values))

    def count(self, least: int, most: int) -> int:
        return self.chance.randint(least, most)

    def alias(self) -> str:
        self._aliases += 1
        return f"t{self._aliases}"
