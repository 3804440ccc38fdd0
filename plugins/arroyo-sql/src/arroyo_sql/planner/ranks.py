"""Window functions: the first rows of groups, and functions over the rows of a window."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from datafusion import Expr, LogicalPlan

from arroyo_sql.planner.columns import hint_of, order_config, provide
from arroyo_sql.planner.expressions import columns_of, literal_value, operands, peel, wrap
from arroyo_sql.planner.neighbors import NEIGHBORS, neighbors, want
from arroyo_sql.planner.query import Query
from arroyo_sql.planner.relations import UPDATING_META, Field, Ranking, Relation, Window, quote

_RANKS = ("row_number", "rank", "dense_rank")
_FLAGS = (" FILTER (WHERE", "(DISTINCT ", "IGNORE NULLS", "RESPECT NULLS")
_BOUND = r"(?:UNBOUNDED (?:PRECEDING|FOLLOWING)|CURRENT ROW|\d+ (?:PRECEDING|FOLLOWING))"
_FRAME = re.compile(rf"(ROWS|RANGE|GROUPS) BETWEEN ({_BOUND}) AND ({_BOUND})$")
_DEFAULT = ("UNBOUNDED PRECEDING", "CURRENT ROW")


def window_functions(query: Query, plan: LogicalPlan, variant: Any) -> Relation:
    """The relation with the functions as columns; a single rank stays to be computed."""
    below = plan.inputs()[0]
    relation = query.rows(below)
    calls = [(wrap(raw), getattr(raw, "expr", raw)) for raw in variant.get_window_expr()]
    calls = [(each, raw.expr if isinstance(raw, Expr) else raw) for each, raw in calls]
    if all(_is_over_time(query, relation, below, variant, raw) for _, raw in calls):
        for expression, raw in calls:
            _check_flags(query, str(expression.schema_name()), str(variant.window_func_name(raw)))
        return neighbors(query, relation, below, variant, calls)
    for expression, raw in calls:
        relation = _one(query, relation, below, variant, expression, raw, is_only=len(calls) == 1)
    return relation


def _one(
    query: Query, relation: Relation, below: LogicalPlan, variant: Any, expression: Expr, raw: Any, *, is_only: bool
) -> Relation:
    name, shown = str(variant.window_func_name(raw)), str(expression.schema_name())
    _check_flags(query, shown, name)
    wanted: dict[str, Expr] = {}
    partition, order = [], []
    is_windowed = False
    printer = query.printer(relation, below)
    for index, each in enumerate(map(wrap, variant.get_partition_exprs(raw))):
        found = printer.field(each)
        if relation.window is not None and found is not None and _is_window(found):
            is_windowed = True
            partition.append("")
        else:
            partition.append(want(wanted, hint_of(each, f"group_{index + 1}"), each))
    for index, key in enumerate(variant.get_sort_exprs(raw)):
        each = wrap(key.expr())
        order.append(
            (want(wanted, hint_of(each, f"order_{index + 1}"), each), bool(key.ascending()), bool(key.nulls_first()))
        )
    arguments = [wrap(each) for each in variant.get_args(raw)]
    relation, names = provide(query, relation, below, wanted, keeps_fields=True, is_exact=True)
    printer = query.printer(relation, below)
    groups = tuple(dict.fromkeys(names[hint] if hint else "window_start" for hint in partition))
    ordering = tuple((names[hint], is_up, is_null_first) for hint, is_up, is_null_first in order)
    column, repeat = name, 2
    while column in query.graph.columns(relation.node):
        column, repeat = f"{name}_{repeat}", repeat + 1
    sql = f"{name}({', '.join(map(printer.sql, arguments))}) over ({_over(query, groups, ordering, shown, name)})"
    field = Field.of_column(column, pa.int64(), name=shown)
    ranking = Ranking(name, column, groups, ordering, sql, is_windowed, query.ttl)
    out = replace(relation, fields=(*relation.fields, field), ranking=ranking)
    if name in _RANKS and is_only:
        return out
    if not is_windowed:
        raise query.refuse(
            f"{name}() OVER needs all rows of its partition, and a stream has no end: partition it by the window of "
            f"the rows, which GROUP BY tumble() or TABLE(TUMBLE(...)) gives",
            name,
        )
    out = query.real(out)
    typed = Field.of_column(column, query.kind(out.node, column), name=shown)
    return replace(out, fields=(*relation.fields, typed))


def _is_over_time(query: Query, relation: Relation, below: LogicalPlan, variant: Any, raw: Any) -> bool:
    """Whether it is a function of rows before and behind, and not among the rows of a window."""
    if str(variant.window_func_name(raw)) not in NEIGHBORS:
        return False
    printer = query.printer(relation, below)
    fields = [printer.field(wrap(each)) for each in variant.get_partition_exprs(raw)]
    return relation.window is None or not any(field is not None and _is_window(field) for field in fields)


def _check_flags(query: Query, shown: str, name: str) -> None:
    if any(flag in shown for flag in _FLAGS):
        raise query.refuse(
            f"DISTINCT, FILTER and IGNORE NULLS of {name}() OVER are not planned: filter the rows before", name
        )


def _is_window(field: Field) -> bool:
    return field.window is not None or field.column in ("window_start", "window_end", "window_time")


def _over(query: Query, groups: Sequence[str], order: Sequence[tuple[str, bool, bool]], shown: str, name: str) -> str:
    words = []
    if groups:
        words.append(f"partition by {', '.join(map(quote, groups))}")
    if order:
        keys = [
            f"{quote(column)} {'asc' if is_up else 'desc'} nulls {'first' if is_null_first else 'last'}"
            for column, is_up, is_null_first in order
        ]
        words.append(f"order by {', '.join(keys)}")
    found = _FRAME.search(shown)
    if found is None and " BETWEEN " in shown:
        raise query.refuse(
            f"the frame of {name}() OVER is not planned: count ROWS, or leave the frame out", "between", name
        )
    if found is not None:
        kind, low, high = found.groups()
        is_default = (
            (kind, low, high) == ("RANGE", *_DEFAULT) if order else low.startswith("UNB") and high.startswith("UNB")
        )
        if not is_default:
            words.append(f"{kind} between {low} and {high}".lower())
    return " ".join(words)


def keep_first(
    query: Query, relation: Relation, below: LogicalPlan, parts: list[Expr], wanted: frozenset[str] | None
) -> tuple[Relation | None, list[Expr]]:
    """The first rows of each group, where a condition bounds the rank; the conditions that are left to be made.

    None where no condition does. `wanted` are the columns that are read above.
    """
    ranking = relation.ranking
    assert ranking is not None
    bounds = [(_bound(query, relation, ranking, part), part) for part in parts]
    found = [(n, part) for n, part in bounds if n is not None]
    if not found:
        return None, parts
    n, used = min(found, key=lambda each: each[0][0])
    limit, is_exact = n
    # Rank 2 alone: the first two, and then the condition itself.
    rest = [part for part in parts if part is not used or not is_exact]
    if limit < 1:
        return None, parts
    name = next(field.name for field in relation.fields if field.column == ranking.column)
    is_shown = wanted is None or name in wanted or any(_reads(part, name) for part in rest)
    if ranking.function == "dense_rank" and limit > 1:
        return None, parts
    if _is_last(query, relation, ranking, limit) and not is_shown:
        return _last(query, relation, ranking), rest
    config: dict[str, Any] = {"n": limit}
    if ranking.function != "row_number":
        if not ranking.is_windowed:
            raise query.refuse(
                f"{ranking.function}() keeps rows that are equal, and how many is known at the end of a window only: "
                f"use row_number(), or partition by the window of the rows",
                ranking.function,
            )
        config["ties"] = True
    if ranking.partition_by:
        config["partition_by"] = list(ranking.partition_by)
    config["order_by"] = [order_config(*key) for key in ranking.order_by]
    if not ranking.order_by:
        raise query.refuse(f"{ranking.function}() that bounds rows needs an ORDER BY", ranking.function)
    if is_shown:
        config["rank_column"] = ranking.column
    node = query.add("top", "std.top_n", [relation.node], config, ranking.function)
    schema = query.graph.schema(node)
    fields = relation.fields if is_shown else _without_rank(relation, ranking)
    kept = replace(
        relation,
        node=node,
        fields=fields,
        ranking=None,
        time=schema.timestamp_column,
        is_updating=UPDATING_META in schema.names,
    )
    return kept, rest


def _is_last(query: Query, relation: Relation, ranking: Ranking, limit: int) -> bool:
    """Whether what is kept is the last row of each key by event time."""
    return (
        limit == 1
        and ranking.function == "row_number"
        and not ranking.is_windowed
        and not relation.is_updating
        and bool(ranking.partition_by)
        and len(ranking.order_by) == 1
        and ranking.order_by[0][:2] == (relation.time, False)
    )


def _last(query: Query, relation: Relation, ranking: Ranking) -> Relation:
    config = {"keys": list(ranking.partition_by), "keep": "last", "ttl": ranking.ttl or "0s"}
    node = query.add("last", "std.deduplicate", [relation.node], config, ranking.function)
    fields = _without_rank(relation, ranking)
    return replace(relation, node=node, fields=fields, ranking=None, is_updating=True)


def _without_rank(relation: Relation, ranking: Ranking) -> tuple[Field, ...]:
    """The fields with nothing for the rank, which nobody reads."""
    return tuple(
        Field(field.qualifier, field.name, "NULL") if field.column == ranking.column else field
        for field in relation.fields
    )


def _reads(expression: Expr, name: str) -> bool:
    return any(column.to_variant().name() == name for column in columns_of(expression))


def _bound(query: Query, relation: Relation, ranking: Ranking, part: Expr) -> tuple[int, bool] | None:
    """How many first rows a condition leaves, and whether it says no more than that."""
    if part.variant_name() != "BinaryExpr":
        return None
    left, right = (peel(each) for each in operands(part))
    operator = str(part.rex_call_operator())
    if left.variant_name() == "Literal":
        left, right = right, left
        operator = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(operator, operator)
    if left.variant_name() != "Column" or right.variant_name() != "Literal":
        return None
    field = query.printer(relation, None).field(left)
    value = literal_value(right)
    if field is None or field.column != ranking.column or isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if int(value) != value:
        return None
    bounds = {"<=": (int(value), True), "<": (int(value) - 1, True), "=": (int(value), int(value) == 1)}
    return bounds.get(operator)


def same_window(left: Window | None, right: Window | None) -> bool:
    return left is not None and right is not None and left.spec == right.spec
