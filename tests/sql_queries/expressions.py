"""Random expressions of a type over given columns, which mean the same in both dialects.

What the dialects define otherwise is not made here, but written by hand in the files of queries: casts of floating
numbers, texts as numbers, negative zero, overflows.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .json_values import COLUMN, json_expression
from .syntax import Column, Expr, Type

INT, FLOAT, DECIMAL, TEXT, BOOL, TIME = Type

_LITERALS = {
    INT: ("0", "1", "2", "5", "7", "-1", "100"),
    FLOAT: ("0.5", "1.25", "3.0", "100.75"),
    DECIMAL: ("CAST(0.01 AS DECIMAL(10, 2))", "CAST(9.99 AS DECIMAL(10, 2))"),
    TEXT: ("''", "'a'", "'ann'", "'gift'", "' '", "'A'", "'it''s'"),
    BOOL: ("TRUE", "FALSE"),
    TIME: ("TIMESTAMP '1970-01-01 00:00:00'", "TIMESTAMP '1969-12-31 23:59:50'", "TIMESTAMP '1970-01-01 00:00:10.5'"),
}
#: Types whose values are compared and chosen from; each has a null.
_NULLS = {
    INT: "CAST(NULL AS BIGINT)",
    FLOAT: "CAST(NULL AS DOUBLE)",
    DECIMAL: "CAST(NULL AS DECIMAL(10, 2))",
    TEXT: "CAST(NULL AS TEXT)",
    BOOL: "CAST(NULL AS BOOLEAN)",
    TIME: "CAST(NULL AS TIMESTAMP)",
}
_PATTERNS = ("a%", "%b%", "_", "", "%", "A_C", "%''%", "gift")

#: Functions by their result: a template, and the types of its arguments.
_FUNCTIONS: dict[Type, Sequence[tuple[str, tuple[Type, ...]]]] = {
    INT: (
        ("({0} + {1})", (INT, INT)),
        ("({0} - {1})", (INT, INT)),
        ("({0} * 3)", (INT,)),
        ("({0} / 2)", (INT,)),
        ("({0} % 4)", (INT,)),
        ("({0} / nullif({1}, 0))", (INT, INT)),
        ("(- {0})", (INT,)),
        ("abs({0})", (INT,)),
        ("length({0})", (TEXT,)),
        ("strpos({0}, 'a')", (TEXT,)),
        ("CAST({0} AS INT)", (BOOL,)),
        ("EXTRACT(MINUTE FROM {0})", (TIME,)),
        ("CAST({0} AS BIGINT)", (INT,)),
    ),
    FLOAT: (
        ("({0} + {1})", (FLOAT, FLOAT)),
        ("({0} - {1})", (FLOAT, FLOAT)),
        ("({0} + {1})", (FLOAT, INT)),
        ("({0} * 2)", (FLOAT,)),
        ("({0} / 4)", (FLOAT,)),
        ("abs({0})", (FLOAT,)),
        ("floor({0})", (FLOAT,)),
        ("CAST({0} AS DOUBLE)", (INT,)),
        ("CAST({0} AS DOUBLE)", (DECIMAL,)),
    ),
    DECIMAL: (("({0} + {1})", (DECIMAL, DECIMAL)), ("({0} - {1})", (DECIMAL, DECIMAL)), ("abs({0})", (DECIMAL,))),
    TEXT: (
        ("({0} || {1})", (TEXT, TEXT)),
        ("upper({0})", (TEXT,)),
        ("lower({0})", (TEXT,)),
        ("trim({0})", (TEXT,)),
        ("substr({0}, 2)", (TEXT,)),
        ("substr({0}, 1, 2)", (TEXT,)),
        ("replace({0}, 'a', 'oo')", (TEXT,)),
        ("reverse({0})", (TEXT,)),
        ("left({0}, 1)", (TEXT,)),
        ("concat({0}, '-', {1})", (TEXT, TEXT)),
        ("CAST({0} AS TEXT)", (INT,)),
        ("CAST({0} AS TEXT)", (BOOL,)),
    ),
    BOOL: (
        ("({0} AND {1})", (BOOL, BOOL)),
        ("({0} OR {1})", (BOOL, BOOL)),
        ("(NOT {0})", (BOOL,)),
        ("({0} IS TRUE)", (BOOL,)),
        ("({0} IS NOT FALSE)", (BOOL,)),
        ("({0} = {1})", (BOOL, BOOL)),
        ("({0} < {1})", (INT, FLOAT)),
        ("starts_with({0}, 'a')", (TEXT,)),
    ),
    TIME: (
        ("({0} + INTERVAL '5 seconds')", (TIME,)),
        ("({0} - INTERVAL '1 minute')", (TIME,)),
        ("date_trunc('minute', {0})", (TIME,)),
        ("date_trunc('second', {0})", (TIME,)),
    ),
}
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
_COMPARED = (INT, INT, FLOAT, DECIMAL, TEXT, TEXT, TIME)

#: Aggregates by their result: a template, and the types of its arguments.
_AGGREGATES: dict[Type, Sequence[tuple[str, tuple[Type, ...]]]] = {
    INT: (
        ("count(*)", ()),
        ("count({0})", (TEXT,)),
        ("count({0})", (INT,)),
        ("count(DISTINCT {0})", (INT,)),
        ("count(DISTINCT {0})", (TEXT,)),
        ("sum({0})", (INT,)),
        ("sum(DISTINCT {0})", (INT,)),
        ("min({0})", (INT,)),
        ("max({0})", (INT,)),
    ),
    FLOAT: (
        ("sum({0})", (FLOAT,)),
        ("avg({0})", (FLOAT,)),
        ("avg({0})", (INT,)),
        ("min({0})", (FLOAT,)),
        ("max({0})", (FLOAT,)),
        ("median({0})", (FLOAT,)),
    ),
    DECIMAL: (("sum({0})", (DECIMAL,)), ("min({0})", (DECIMAL,)), ("max({0})", (DECIMAL,))),
    TEXT: (("min({0})", (TEXT,)), ("max({0})", (TEXT,))),
    BOOL: (("bool_and({0})", (BOOL,)), ("bool_or({0})", (BOOL,))),
    TIME: (("min({0})", (TIME,)), ("max({0})", (TIME,))),
}


@dataclass(slots=True)
class Expressions:
    """Makes expressions of columns, each with the alias of its relation."""

    chance: random.Random
    columns: Sequence[tuple[str, Column]]

    def types(self) -> list[Type]:
        """The types of the columns: what expressions are best made of."""
        return [column.type for _, column in self.columns]

    def any(self, depth: int) -> Expr:
        return self.of(self.chance.choice(self.types()), depth)

    def of(self, kind: Type, depth: int) -> Expr:
        """An expression of the type, at most so deep."""
        if depth <= 0 or self.chance.random() < 0.25:
            return self.leaf(kind)
        makers: list[Callable[[Type, int], Expr]] = [self._call, self._call, self._call, self._choice]
        if kind is BOOL:
            makers += [self._comparison, self._comparison, self._comparison, self._test]
        return self.chance.choice(makers)(kind, depth)

    def leaf(self, kind: Type) -> Expr:
        found = self.columns_of(kind)
        if found and self.chance.random() < 0.8:
            return self.chance.choice(found)
        if self.chance.random() < 0.1:
            return Expr(kind, _NULLS[kind])
        return Expr(kind, self.chance.choice(_LITERALS[kind]))

    def columns_of(self, kind: Type) -> list[Expr]:
        return [column.of(alias) for alias, column in self.columns if column.type is kind]

    def aggregate(self, depth: int) -> Expr:
        """An aggregate of an expression, with a filter now and then."""
        kind = self.chance.choice([INT, INT, *self.types()])
        template, arguments = self.chance.choice(_AGGREGATES[kind])
        args = tuple(self.of(each, depth) for each in arguments)
        if self.chance.random() < 0.2:
            template += f" FILTER (WHERE {{{len(args)}}})"
            args = (*args, self.of(BOOL, depth))
        return Expr(kind, template, args)

    def _call(self, kind: Type, depth: int) -> Expr:
        documents = [column.of(alias) for alias, column in self.columns if column.name == COLUMN]
        if documents and self.chance.random() < 0.5:
            found = json_expression(self.chance, kind, self.chance.choice(documents))
            if found is not None:
                return found
        template, arguments = self.chance.choice(_FUNCTIONS[kind])
        return Expr(kind, template, tuple(self.of(each, depth - 1) for each in arguments))

    def _choice(self, kind: Type, depth: int) -> Expr:
        """One of several values of the type."""
        one, other = self.of(kind, depth - 1), self.of(kind, depth - 1)
        match self.chance.randrange(5):
            case 0:
                return Expr(kind, "coalesce({0}, {1})", (one, other))
            case 1:
                return Expr(kind, "nullif({0}, {1})", (one, other))
            case 2:
                return Expr(kind, "CASE WHEN {0} THEN {1} END", (self.of(BOOL, depth - 1), one))
            case 3 if kind is not BOOL:
                return Expr(kind, self.chance.choice(("greatest({0}, {1})", "least({0}, {1})")), (one, other))
            case _:
                return Expr(kind, "CASE WHEN {0} THEN {1} ELSE {2} END", (self.of(BOOL, depth - 1), one, other))

    def _comparison(self, kind: Type, depth: int) -> Expr:
        compared = self.chance.choice(_COMPARED)
        args = (self.of(compared, depth - 1), self.of(compared, depth - 1))
        return Expr(BOOL, f"({{0}} {self.chance.choice(_COMPARISONS)} {{1}})", args)

    def _test(self, kind: Type, depth: int) -> Expr:
        compared = self.chance.choice(_COMPARED)
        value = self.of(compared, depth - 1)
        no = self.chance.choice(("", "NOT "))
        match self.chance.randrange(4):
            case 0:
                return Expr(BOOL, f"({{0}} IS {no}NULL)", (value,))
            case 1:
                literals = self.chance.sample(_LITERALS[compared], 2)
                if self.chance.random() < 0.3:
                    literals.append("NULL")
                return Expr(BOOL, f"({{0}} {no}IN ({', '.join(literals)}))", (value,))
            case 2:
                bounds = (self.leaf(compared), self.leaf(compared))
                return Expr(BOOL, f"({{0}} {no}BETWEEN {{1}} AND {{2}})", (value, *bounds))
            case _:
                pattern = self.chance.choice(_PATTERNS)
                how = self.chance.choice(("LIKE", "ILIKE"))
                return Expr(BOOL, f"({{0}} {no}{how} '{pattern}')", (self.of(TEXT, depth - 1),))
