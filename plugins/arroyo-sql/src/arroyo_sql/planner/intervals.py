"""Conditions on two event times that say how far apart they may be."""

from __future__ import annotations

from dataclasses import dataclass

from datafusion import Expr

from arroyo_sql.planner.expressions import literal_value, operands, peel
from arroyo_sql.planner.literals import interval_us
from arroyo_sql.planner.query import Query
from arroyo_sql.planner.relations import Relation

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far the time of the right row may be after that of the left, both included."""

    lower_us: int
    upper_us: int


@dataclass(frozen=True, slots=True)
class _Moment:
    """An event time of one side, and how much is added to it."""

    side: str
    offset_us: int


def interval_bounds(
    query: Query, left: Relation, right: Relation, conditions: list[Expr]
) -> tuple[Bounds | None, list[Expr]]:
    """The bounds that the conditions set, and those conditions that say something else; None without both bounds."""
    if left.time is None or right.time is None or left.is_updating or right.is_updating:
        return None, conditions
    lower: int | None = None
    upper: int | None = None
    rest = []
    for condition in conditions:
        found = _difference(query, left, right, condition)
        if found is None:
            rest.append(condition)
            continue
        operator, value = found
        if operator in (">", ">="):
            value += operator == ">"
            lower = value if lower is None else max(lower, value)
        else:
            value -= operator == "<"
            upper = value if upper is None else min(upper, value)
    if lower is None or upper is None or lower > upper:
        return None, conditions
    return Bounds(lower, upper), rest


def _difference(query: Query, left: Relation, right: Relation, condition: Expr) -> tuple[str, int] | None:
    """A comparison of the two times as one of the right one less the left one, in microseconds."""
    if condition.variant_name() != "BinaryExpr" or str(condition.rex_call_operator()) not in _FLIPPED:
        return None
    operator = str(condition.rex_call_operator())
    moments = [_moment(query, left, right, each) for each in operands(condition)]
    one, other = moments
    if one is None or other is None or one.side == other.side:
        return None
    if one.side == "left":
        one, other, operator = other, one, _FLIPPED[operator]
    return operator, other.offset_us - one.offset_us


def _moment(query: Query, left: Relation, right: Relation, expression: Expr) -> _Moment | None:
    inner, offset = peel(expression), 0
    if inner.variant_name() == "BinaryExpr" and str(inner.rex_call_operator()) in ("+", "-"):
        base, added = operands(inner)
        sign = -1 if str(inner.rex_call_operator()) == "-" else 1
        if peel(base).variant_name() == "Literal" and sign == 1:
            base, added = added, base
        literal = peel(added)
        if literal.variant_name() != "Literal":
            return None
        found = interval_us(literal_value(literal))
        if found is None:
            return None
        inner, offset = peel(base), sign * found
    if inner.variant_name() != "Column":
        return None
    column = inner.to_variant()
    for name, relation in (("left", left), ("right", right)):
        for field in relation.fields:
            is_meant = field.name == column.name() and field.qualifier == column.relation()
            if is_meant and field.column is not None and field.column == relation.time:
                return _Moment(name, offset)
    return None
