"""The sides of a join: what must be equal as columns of one type, under names that do not clash."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from datafusion import Expr, LogicalPlan

from arroyo_sql.planner.columns import hint_of, provide
from arroyo_sql.planner.expressions import Printer, call_of, literal_value, peel
from arroyo_sql.planner.query import Query
from arroyo_sql.planner.relations import UPDATING_META, WINDOW_COLUMNS, Relation, quote
from arroyo_sql.planner.sql_types import cast_sql


@dataclass(frozen=True, slots=True)
class Side:
    relation: Relation
    plan: LogicalPlan
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pair:
    """Expressions of both sides that must be equal."""

    left: Expr
    right: Expr


def free_name(name: str, taken: set[str]) -> str:
    found, repeat = name, 2
    while found in taken:
        found, repeat = f"{name}_{repeat}", repeat + 1
    return found


def keyed(
    query: Query, left: Side, right: Side, pairs: list[Pair], *, is_null_safe: bool, keeps_right: bool = True
) -> tuple[Side, Side]:
    """Both sides with the columns that are equal, and only those columns that are read afterwards."""
    made = []
    for side, expressions, is_kept in (
        (left, [pair.left for pair in pairs], True),
        (right, [pair.right for pair in pairs], keeps_right),
    ):
        wanted: dict[str, Expr] = {}
        hints = []
        for index, expression in enumerate(expressions):
            base = hint_of(expression, f"key_{index + 1}")
            hint, repeat = base, 2
            while hint in wanted:
                hint, repeat = f"{base}_{repeat}", repeat + 1
            wanted[hint] = expression
            hints.append(hint)
        relation, names = provide(query, side.relation, side.plan, wanted, keeps_fields=is_kept, is_exact=is_kept)
        made.append(Side(relation, side.plan, tuple(names[hint] for hint in hints)))
    left, right = _same_types(query, made[0], made[1])
    return _null_safe(query, left, right) if is_null_safe else (left, right)


def _same_types(query: Query, left: Side, right: Side) -> tuple[Side, Side]:
    """Casts the keys of the right side whose types are others than those of the left."""
    computed: dict[str, str] = {}
    keys = []
    for one, other in zip(left.keys, right.keys, strict=True):
        wanted = query.kind(left.relation.node, one)
        if query.kind(right.relation.node, other) == wanted:
            keys.append(other)
            continue
        printed = cast_sql(quote(other), wanted)
        if printed is None:
            raise query.refuse(f"columns of type {wanted} cannot be joined: join by parts of them", "on")
        name = free_name(f"{other}_key", {*query.graph.columns(right.relation.node), *computed})
        computed[name] = printed
        keys.append(name)
    return left, _with(query, replace(right, keys=tuple(keys)), computed)


def _null_safe(query: Query, left: Side, right: Side) -> tuple[Side, Side]:
    """Keys for which NULL is a value: whether it is NULL, and a value in its place."""
    sides = []
    for side in (left, right):
        computed, keys = {}, []
        taken = set(query.graph.columns(side.relation.node))
        for key in side.keys:
            is_null, value = free_name(f"{key}_is_null", taken), free_name(f"{key}_or_zero", taken)
            taken |= {is_null, value}
            zero = _zero(query, query.kind(side.relation.node, key))
            computed[is_null] = f"({quote(key)} IS NULL)"
            computed[value] = f"coalesce({quote(key)}, {zero})"
            keys += [is_null, value]
        sides.append(_with(query, replace(side, keys=tuple(keys)), computed))
    return sides[0], sides[1]


def _zero(query: Query, kind: pa.DataType) -> str:
    if pa.types.is_string(kind):
        return "''"
    if pa.types.is_boolean(kind):
        return "FALSE"
    text = "'1970-01-01'" if pa.types.is_temporal(kind) else "'0'"
    printed = cast_sql(text, kind)
    if printed is None or pa.types.is_nested(kind) or pa.types.is_binary(kind):
        raise query.refuse(
            f"columns of type {kind} cannot be compared with NULLs: compare parts of them",
            "is not distinct from",
            "intersect",
            "except",
        )
    return printed


def _with(query: Query, side: Side, computed: dict[str, str]) -> Side:
    if not computed:
        return side
    present = [name for name in query.graph.columns(side.relation.node) if name != UPDATING_META]
    config = {"keep": present, "expressions": computed}
    node = query.add("keys", "std.project", [side.relation.node], config)
    return replace(side, relation=replace(side.relation, node=node))


def untangled(query: Query, left: Side, right: Side) -> tuple[Side, Side]:
    """The right side without names that would be taken after `right_` is put before them."""
    mine = set(query.graph.columns(left.relation.node))
    theirs = query.graph.columns(right.relation.node)
    bad = [name for name in theirs if name in mine and (f"right_{name}" in mine or f"right_{name}" in theirs)]
    bad = [name for name in bad if name not in (UPDATING_META, *WINDOW_COLUMNS)]
    if not bad:
        return left, right
    taken = {*mine, *theirs}
    names = {}
    for name in bad:
        names[name] = free_name(f"{name}_of_right", taken)
        taken.add(names[name])
    kept = [name for name in theirs if name not in bad and name != UPDATING_META]
    config: dict[str, Any] = {"keep": kept} if kept else {}
    config["expressions"] = {new: quote(old) for old, new in names.items()}
    relation = right.relation
    node = query.add("renamed", "std.project", [relation.node], config)
    fields = tuple(
        replace(field, column=names[field.column], sql=quote(names[field.column])) if field.column in names else field
        for field in relation.fields
    )
    time = names.get(relation.time or "", relation.time)
    moved = replace(relation, node=node, fields=fields, time=time)
    return left, replace(right, relation=moved, keys=tuple(names.get(key, key) for key in right.keys))


def is_one_row(plan: LogicalPlan) -> bool:
    """Whether a plan gives one row at most: an aggregate of all rows."""
    variant = plan.to_variant()
    kind = type(variant).__name__
    if kind in ("Projection", "SubqueryAlias", "Filter"):
        return is_one_row(plan.inputs()[0])
    return kind == "Aggregate" and not variant.group_by_exprs()


def with_one_key(query: Query, side: Side) -> Side:
    """With a key that all rows have."""
    name = free_name("one", set(query.graph.columns(side.relation.node)))
    return _with(query, replace(side, keys=(name,)), {name: "TRUE"})


def window_pairs(query: Query, left: Side, right: Side, pairs: list[Pair]) -> tuple[list[Pair], bool]:
    """The pairs without those of the windows of both sides, and whether the windows are equal."""
    if left.relation.window is None or right.relation.window is None:
        return pairs, False
    edges = [
        (
            _edge(left.relation, query.printer(left.relation, None), pair.left),
            _edge(right.relation, query.printer(right.relation, None), pair.right),
        )
        for pair in pairs
    ]
    equal = {one for one, other in edges if one is not None and one == other}
    if not equal:
        return pairs, False
    if left.relation.window.spec != right.relation.window.spec:
        raise query.refuse("both sides of a join by window have the same window", "join", "where")
    is_fixed = left.relation.window.kind != "session"
    if not (is_fixed or "window" in equal or {"start", "end"} <= equal):
        raise query.refuse("sessions are joined by start and end: add the other one to ON", "on", "where")
    return [pair for pair, (one, other) in zip(pairs, edges, strict=True) if one is None or one != other], True


def _edge(relation: Relation, printer: Printer, expression: Expr) -> str | None:
    inner = peel(expression)
    field = printer.field(inner)
    if field is not None:
        if field.window is not None:
            return "window"
        return field.column.removeprefix("window_") if field.column in WINDOW_COLUMNS else None
    name, arguments = call_of(inner)
    if name == "get_field" and len(arguments) == 2:
        base = printer.field(arguments[0])
        if base is not None and base.window is not None:
            return str(literal_value(arguments[1]))
    return None
