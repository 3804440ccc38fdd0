"""DataFusion's expressions as SQL over the columns of a node. What is not listed here is refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
from datafusion import Expr

from arroyo_core.errors import PipelineError
from arroyo_sql.planner.literals import UnprintableError, literal_sql
from arroyo_sql.planner.relations import Field
from arroyo_sql.planner.sql_types import cast_sql, sql_name

#: The event time of a row, which Arroyo has as a function.
ROW_TIME = "row_time"
WINDOW_FUNCTIONS = frozenset({"tumble", "hop", "session", "spark_window", "spark_hop", "session_window"})

_BINARY = {
    **{name: name for name in ("=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "AND", "OR", "||")},
    **{name: name for name in ("&", "|", "<<", ">>", "~", "~*", "!~", "!~*", "~~", "!~~", "~~*", "!~~*")},
    **{name: name for name in ("IS DISTINCT FROM", "IS NOT DISTINCT FROM", "@>", "<@", "->", "->>", "?")},
    "BIT_XOR": "^",
}
_TESTS = {
    "IsNull": "IS NULL",
    "IsNotNull": "IS NOT NULL",
    "IsTrue": "IS TRUE",
    "IsFalse": "IS FALSE",
    "IsUnknown": "IS UNKNOWN",
    "IsNotTrue": "IS NOT TRUE",
    "IsNotFalse": "IS NOT FALSE",
    "IsNotUnknown": "IS NOT UNKNOWN",
}
_INSTEAD = {
    "AggregateFunction": "an aggregate stands in SELECT or HAVING of a query with GROUP BY",
    "WindowFunction": "a window function stands in SELECT: filter it with QUALIFY, or in a query around it",
    "ScalarSubquery": "join the table instead of reading it in a subquery",
    "Exists": "EXISTS stands in WHERE, joined by AND",
    "InSubquery": "IN (SELECT ...) stands in WHERE, joined by AND",
    "GroupingSet": "write one query for each set of columns, and UNION ALL",
    "Placeholder": "write a value, or a parameter as ${name}",
    "Wildcard": "write the columns out",
    "OuterReferenceColumn": "join the table instead of reading its column in a subquery",
    "ScalarVariable": "write a parameter as ${name}",
    "SetComparison": "write IN (SELECT ...) for = ANY, and NOT EXISTS (SELECT ...) for ALL",
    "Unnest": "unnest() stands in SELECT, on its own",
}


#: Words of a query that stand for kinds of expressions.
_PLACES: dict[str, tuple[str, ...]] = {
    "Exists": ("exists",),
    "InSubquery": ("in",),
    "GroupingSet": ("grouping", "rollup", "cube"),
    "Placeholder": ("?", "$1"),
    "ScalarSubquery": ("( select",),
    "SetComparison": ("any", "some", "all"),
    "WindowFunction": ("over",),
}


def wrap(expression: object) -> Expr:
    """Of plans, DataFusion gives expressions without their Python class."""
    if isinstance(expression, Expr):
        return expression
    inner = getattr(expression, "expr", None)
    return inner if isinstance(inner, Expr) else Expr(expression)


def unalias(expression: Expr) -> Expr:
    while expression.variant_name() == "Alias":
        expression = wrap(expression.to_variant().expr())
    return expression


def peel(expression: Expr) -> Expr:
    """Without the casts around it."""
    while expression.variant_name() in ("Alias", "Cast"):
        expression = wrap(expression.to_variant().expr())
    return expression


def operands(expression: Expr) -> list[Expr]:
    return [wrap(each) for each in expression.rex_call_operands()]


def call_of(expression: Expr) -> tuple[str | None, list[Expr]]:
    """The name and the arguments of a function call; None for anything else."""
    if expression.variant_name() != "ScalarFunction":
        return None, []
    return str(expression.rex_call_operator()), operands(expression)


def literal_value(expression: Expr) -> object:
    """The value of a literal, as Python has it."""
    value = expression.python_value()
    return value.as_py() if isinstance(value, pa.Scalar) else value


def conjuncts(expression: Expr) -> list[Expr]:
    """The conditions that AND joins."""
    expression = unalias(expression)
    if expression.variant_name() == "BinaryExpr" and expression.rex_call_operator() == "AND":
        return [part for operand in operands(expression) for part in conjuncts(operand)]
    return [expression]


def parts_of(expression: Expr) -> list[Expr]:
    """The expressions right inside of one; none for what cannot be taken apart."""
    kind = expression.variant_name()
    if kind in ("Column", "Literal"):
        return []
    if kind == "Alias":
        return [wrap(expression.to_variant().expr())]
    try:
        return operands(expression)
    # DataFusion raises bare exceptions for kinds of expressions that it cannot take apart.
    except Exception:
        return []


def contains(expression: Expr, is_wanted: Callable[[Expr], bool]) -> bool:
    return is_wanted(expression) or any(contains(part, is_wanted) for part in parts_of(expression))


def is_window_call(expression: Expr) -> bool:
    return call_of(expression)[0] in WINDOW_FUNCTIONS


def columns_of(expression: Expr) -> list[Expr]:
    if expression.variant_name() == "Column":
        return [expression]
    return [column for part in parts_of(expression) for column in columns_of(part)]


@dataclass(frozen=True, slots=True)
class Printer:
    """Prints expressions; raises `PipelineError` for kinds that are not allowed.

    `find` gives the column that a name means, `time` the one of event time, which `row_time()` is, `type_of` the type
    of an expression, `refuse` makes the error for a kind of expression: of a message and of words to point at.
    """

    find: Callable[[str | None, str], Field]
    time: Callable[[], Field]
    type_of: Callable[[Expr], pa.DataType]
    refuse: Callable[[str, Sequence[str]], PipelineError]

    def field(self, expression: Expr) -> Field | None:
        """The column that an expression is, None where it is more than a column."""
        expression = unalias(expression)
        if call_of(expression)[0] == ROW_TIME:
            return self.time()
        if expression.variant_name() != "Column":
            return None
        column = expression.to_variant()
        return self.find(column.relation(), column.name())

    def sql(self, expression: Expr) -> str:
        expression = unalias(expression)
        kind = expression.variant_name()
        if kind in _TESTS:
            return f"({self.sql(operands(expression)[0])} {_TESTS[kind]})"
        method = _METHODS.get(kind)
        if method is None:
            instead = _INSTEAD.get(kind, "compute it in a user function")
            raise self.refuse(f"{_spoken(kind)} cannot be computed here: {instead}", _words(kind))
        return str(getattr(self, method)(expression))

    def column(self, expression: Expr) -> str:
        field = self.field(expression)
        assert field is not None
        return field.sql

    def literal(self, expression: Expr, *, is_bare: bool = False) -> str:
        if str(expression.to_variant().data_type()) == "Null":
            raise self.refuse("NULL has no type here: write CAST(NULL AS TEXT), or another type", ("null",))
        try:
            return literal_sql(expression.python_value(), is_bare=is_bare)
        except UnprintableError as error:
            raise self.refuse(
                f"a constant of type {error} cannot be written here: compute it in a function", ("map", "struct", "[")
            ) from None

    def operand(self, expression: Expr) -> str:
        """An operand of an operator: the other one gives a plain number its type."""
        expression = unalias(expression)
        return (
            self.literal(expression, is_bare=True) if expression.variant_name() == "Literal" else self.sql(expression)
        )

    def function(self, expression: Expr) -> str:
        name, arguments = call_of(expression)
        assert name is not None
        if name == ROW_TIME:
            return self.time().sql
        if name == "get_field":
            base = self.field(arguments[0])
            if base is not None and base.window is not None and len(arguments) == 2:
                return {"start": base.window.start, "end": base.window.end}[str(literal_value(arguments[1]))]
        if name in WINDOW_FUNCTIONS:
            shown = "window" if name.startswith("spark") else name
            raise self.refuse(
                f"{shown}() stands in GROUP BY, not among other expressions: group by it, and read "
                f"the start and the end of what it gives",
                (shown,),
            )
        return f"{name}({', '.join(map(self.sql, arguments))})"

    def binary(self, expression: Expr) -> str:
        written = str(expression.rex_call_operator())
        operator = _BINARY.get(written)
        if operator is None:
            raise self.refuse(f"the operator {written} cannot be computed here: write a function", (written,))
        left, right = operands(expression)
        return f"({self.operand(left)} {operator} {self.operand(right)})"

    def cast(self, expression: Expr) -> str:
        is_try = expression.variant_name() == "TryCast"
        target = self.type_of(expression)
        printed = cast_sql(self.sql(wrap(expression.to_variant().expr())), target, is_try=is_try)
        if printed is None:
            raise self.refuse(
                f"a cast to {sql_name(target)} cannot be computed here: cast the parts of the value", ("cast",)
            )
        return printed

    def negation(self, expression: Expr) -> str:
        word = "NOT" if expression.variant_name() == "Not" else "-"
        return f"({word} {self.sql(operands(expression)[0])})"

    def like(self, expression: Expr) -> str:
        variant = expression.to_variant()
        value, pattern = operands(expression)
        word = str(expression.rex_call_operator()).upper()
        escape = variant.escape_char()
        if "SIMILAR" in word:
            # DataFusion looks for the pattern anywhere in the text.
            raise self.refuse("SIMILAR TO is not planned: write x ~ '^(...)$', or LIKE", ("similar to",))
        if escape is None or str(escape) == "\\":
            return f"({self.sql(value)} {word} {self.sql(pattern)})"
        constant = unalias(pattern)
        if constant.variant_name() != "Literal":
            raise self.refuse("ESCAPE is planned for LIKE and a constant: double the letter in a function", ("escape",))
        text = literal_sql(pa.scalar(_escaped(str(literal_value(constant)), str(escape))))
        return f"({self.sql(value)} {word} {text})"

    def in_list(self, expression: Expr) -> str:
        value, *choices = operands(expression)
        word = "NOT IN" if expression.to_variant().negated() else "IN"
        return f"({self.sql(value)} {word} ({', '.join(map(self.operand, choices))}))"

    def between(self, expression: Expr) -> str:
        variant = expression.to_variant()
        word = "NOT BETWEEN" if variant.negated() else "BETWEEN"
        value, low, high = (self.operand(wrap(part)) for part in (variant.expr(), variant.low(), variant.high()))
        return f"({value} {word} {low} AND {high})"

    def case(self, expression: Expr) -> str:
        variant = expression.to_variant()
        base, other = variant.expr(), variant.else_expr()
        words = ["CASE"] + ([self.sql(wrap(base))] if base is not None else [])
        for when, then in variant.when_then_expr():
            words.append(f"WHEN {self.sql(wrap(when))} THEN {self.sql(wrap(then))}")
        if other is not None:
            words.append(f"ELSE {self.sql(wrap(other))}")
        return " ".join([*words, "END"])


#: The method that prints a kind of expression.
_METHODS: dict[str, str] = {
    "Column": "column",
    "Literal": "literal",
    "ScalarFunction": "function",
    "BinaryExpr": "binary",
    "Cast": "cast",
    "TryCast": "cast",
    "Not": "negation",
    "Negative": "negation",
    "Like": "like",
    "RLike": "like",
    "InList": "in_list",
    "Between": "between",
    "Case": "case",
}


def _escaped(pattern: str, escape: str) -> str:
    """A pattern with a backslash in place of the letter that was chosen to escape."""
    made, index = [], 0
    while index < len(pattern):
        letter = pattern[index]
        if letter == escape and index + 1 < len(pattern):
            index += 1
            made.append(f"\\{pattern[index]}" if pattern[index] in "%_\\" else pattern[index])
        else:
            made.append("\\\\" if letter == "\\" else letter)
        index += 1
    return "".join(made)


def _spoken(kind: str) -> str:
    words = re.sub(r"(?<!^)([A-Z])", r" \1", kind).lower()
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


def _words(kind: str) -> Sequence[str]:
    return _PLACES.get(kind, ())
