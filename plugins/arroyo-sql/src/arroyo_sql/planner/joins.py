"""Joins: in a window, between times, and of whole streams; of rows side by side, or of those that have a partner."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from datafusion import Expr, LogicalPlan, lit

from arroyo_core.api import ArroyoSchema
from arroyo_core.api.units import format_duration_us
from arroyo_sql.planner.expressions import conjuncts, wrap
from arroyo_sql.planner.intervals import Bounds, interval_bounds
from arroyo_sql.planner.join_sides import (
    Pair,
    Side,
    free_name,
    is_one_row,
    keyed,
    untangled,
    window_pairs,
    with_one_key,
)
from arroyo_sql.planner.lookups import lookup_join
from arroyo_sql.planner.query import Query
from arroyo_sql.planner.relations import UPDATING_META, WINDOW_COLUMNS, Field, Relation, quote
from arroyo_sql.planner.rows import bare, where

_TYPES = {
    "Inner": "inner",
    "Left": "left",
    "Right": "right",
    "Full": "full",
    "LeftSemi": "semi",
    "LeftAnti": "anti",
    "RightSemi": "semi",
    "RightAnti": "anti",
}
#: Of which only the rows of the first input come out.
_ONE_SIDED = frozenset({"semi", "anti"})


def join(query: Query, plan: LogicalPlan, variant: Any) -> Relation:
    kind = str(variant.join_type())
    left_plan, right_plan = plan.inputs()
    left, right = query.visit(left_plan), query.visit(right_plan)
    pairs = [Pair(wrap(one), wrap(other)) for one, other in variant.on()]
    conditions = conjuncts(wrap(variant.filter())) if variant.filter() is not None else []
    # Only the text of the plan says so: NOT IN is true of nothing where there is a NULL.
    if "null_aware" in plan.display():
        raise query.refuse("NOT IN (SELECT ...) depends on every NULL that may still come: write NOT EXISTS", "not in")
    if kind not in _TYPES:
        message = "IN (SELECT ...) and EXISTS stand in WHERE, joined by AND"
        raise query.refuse(message, "in", "exists", "any", "some", "all")
    sides = Side(left, left_plan), Side(right, right_plan)
    if right.lookup is not None or left.lookup is not None:
        return lookup_join(query, plan, kind, *sides, pairs, conditions)
    sides = Side(query.real(left), left_plan), Side(query.real(right), right_plan)
    is_null_safe = str(variant.null_equals_null()).endswith("True") or variant.null_equals_null() is True
    if kind in ("RightSemi", "RightAnti"):
        sides, pairs = sides[::-1], [Pair(pair.right, pair.left) for pair in pairs]
    return equal_join(query, plan, _TYPES[kind], sides, pairs, conditions, is_null_safe=is_null_safe)


def equal_join(
    query: Query,
    plan: LogicalPlan,
    kind: str,
    sides: tuple[Side, Side],
    pairs: list[Pair],
    conditions: list[Expr],
    *,
    is_null_safe: bool,
) -> Relation:
    """Rows of both sides side by side, where the pairs are equal and the conditions hold."""
    left, right = sides
    pairs, is_windowed = window_pairs(query, left, right, pairs)
    is_single = is_one_row(right.plan) or (kind == "inner" and is_one_row(left.plan))
    is_with_one = not pairs and not is_windowed and is_single
    if not pairs and not is_windowed and not is_with_one:
        raise _without_equality(query, kind)
    left, right = keyed(
        query, left, right, pairs, is_null_safe=is_null_safe, keeps_right=kind not in _ONE_SIDED or bool(conditions)
    )
    if is_with_one:
        left, right = with_one_key(query, left), with_one_key(query, right)
    bounds, rest = None, conditions
    if not is_windowed and not is_with_one:
        bounds, rest = interval_bounds(query, left.relation, right.relation, conditions)
    left, right = untangled(query, left, right)
    operator, config = _operator(query, left, right, is_windowed=is_windowed, bounds=bounds)
    inputs = [left.relation.node, right.relation.node]
    if kind == "inner":
        node = query.add("join", operator, inputs, config, "join", "from")
        return where(query, _side_by_side(query, node, left, right, is_windowed=is_windowed), plan, rest)
    if rest:
        config = {**config, "condition": _condition(query, operator, config, (left, right), rest, is_windowed)}
    role, words = ("in", ("exists", "in", "intersect", "except")) if kind in _ONE_SIDED else ("join", (f"{kind} join",))
    node = query.add(role, operator, inputs, {**config, "type": kind}, *words, "join", "from")
    if kind in _ONE_SIDED:
        schema = query.graph.schema(node)
        return replace(
            left.relation, node=node, time=schema.timestamp_column, is_updating=UPDATING_META in schema.names
        )
    return _side_by_side(query, node, left, right, is_windowed=is_windowed)


def _without_equality(query: Query, kind: str) -> Exception:
    if kind in _ONE_SIDED:
        message = "a subquery of EXISTS and IN needs an equality with a column outside: b.y = a.x"
        return query.refuse(message, "exists", "in", "any", "some", "all")
    return query.refuse(
        "a join of streams needs an equality of columns of both sides: ON a.x = b.y; every row would be kept and "
        "compared with all others",
        "join",
        "cross join",
        "from",
    )


def _operator(
    query: Query, left: Side, right: Side, *, is_windowed: bool, bounds: Bounds | None
) -> tuple[str, dict[str, Any]]:
    """The operator that joins, and its config but for the type."""
    on = [{"left": one, "right": other} for one, other in zip(left.keys, right.keys, strict=True)]
    config: dict[str, Any] = {"on": on} if on else {}
    if is_windowed:
        return "std.window_join", config
    taken = {*query.graph.columns(left.relation.node), *query.graph.columns(right.relation.node)}
    if "join_time" in taken:
        config["time_column"] = free_name("join_time", taken)
    if bounds is not None:
        limits = {"lower": _duration(bounds.lower_us), "upper": _duration(bounds.upper_us)}
        return "std.interval_join", {**config, **limits}
    return "std.join", {**config, **query.ttl_or("0s")}


def _duration(duration_us: int) -> str:
    text = format_duration_us(abs(duration_us))
    return f"-{text}" if duration_us < 0 else text


def _condition(
    query: Query,
    operator: str,
    config: dict[str, Any],
    sides: tuple[Side, Side],
    conditions: list[Expr],
    is_windowed: bool,
) -> str:
    """What pairs must fulfil beside their keys, over the columns that an inner join would give."""
    left, right = sides
    pairs = query.graph.type_of(operator, [left.relation.node, right.relation.node], config, at=query.at)
    relation = _combined("", pairs, query, left, right, is_windowed=is_windowed)
    # What a semi join gives has not the columns of its other side.
    frames = query.session.frame(left.plan), query.session.frame(right.plan)
    printer = query.printer(relation, frames[0].join_on(frames[1], lit(True)).logical_plan())
    return bare(" AND ".join(printer.sql(condition) for condition in conditions))


def _side_by_side(query: Query, node: str, left: Side, right: Side, *, is_windowed: bool) -> Relation:
    return _combined(node, query.graph.schema(node), query, left, right, is_windowed=is_windowed)


def _combined(node: str, schema: ArroyoSchema, query: Query, left: Side, right: Side, *, is_windowed: bool) -> Relation:
    """What the query calls the columns of a join: those of the left, then those of the right, in their order."""
    once = {UPDATING_META, *(WINDOW_COLUMNS if is_windowed else ())}
    mine = [name for name in query.graph.columns(left.relation.node) if name not in once]
    theirs = [name for name in query.graph.columns(right.relation.node) if name not in once]
    given = [name for name in schema.names if name not in once]
    moved = dict(zip(theirs, given[len(mine) : len(mine) + len(theirs)], strict=True))
    window = left.relation.window if is_windowed else None
    fields = [*left.relation.fields]
    fields += [_of_right(field, moved) for field in right.relation.fields]
    return Relation(node, tuple(fields), schema.timestamp_column, UPDATING_META in schema.names, window)


def _of_right(field: Field, moved: dict[str, str]) -> Field:
    if field.window is not None:
        start, end = moved.get("window_start", "window_start"), moved.get("window_end", "window_end")
        window = replace(field.window, start=quote(start), end=quote(end))
        return Field.of_window(window, name=field.name, qualifier=field.qualifier)
    assert field.column is not None
    column = moved.get(field.column, field.column)
    return replace(field, column=column, sql=quote(column))
