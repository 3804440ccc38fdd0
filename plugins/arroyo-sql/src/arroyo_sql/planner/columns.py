"""Makes columns of what a query computes, where an operator needs them as columns of its input."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from datafusion import Expr, LogicalPlan

from arroyo_sql.planner.expressions import unalias
from arroyo_sql.planner.query import Query
from arroyo_sql.planner.relations import UPDATING_META, WINDOW_COLUMNS, Field, Relation, quote

#: Names that operators give to columns of their own.
_TAKEN = frozenset({*WINDOW_COLUMNS, UPDATING_META, "join_time", "_rows"})


def order_config(column: str, is_ascending: bool, is_null_first: bool) -> dict[str, Any]:
    """One entry of an operator's `order_by`."""
    key: dict[str, Any] = {"column": column}
    if not is_ascending:
        key["descending"] = True
    if is_null_first:
        key["nulls_last"] = False
    return key


def is_name(text: str) -> bool:
    return re.fullmatch(r"[A-Za-z_]\w*", text) is not None


def hint_of(expression: Expr, other: str) -> str:
    """What to call the column of an expression: its own name where it is a column."""
    inner = unalias(expression)
    if inner.variant_name() == "Column" and is_name(inner.to_variant().name()):
        return str(inner.to_variant().name())
    return other


@dataclass(slots=True)
class Layout:
    """The columns of a projection while they are put together."""

    columns: dict[str, str] = field(default_factory=dict)
    #: Names that are columns below, and keep their meaning.
    below: frozenset[str] = frozenset()
    #: Whether SQL gives another value each time: then the same SQL is not the same column.
    is_volatile: Callable[[str], bool] = field(default=lambda sql: True)

    def copy(self, column: str) -> str:
        self.columns.setdefault(column, quote(column))
        return column

    def compute(self, hint: str, sql: str) -> str:
        """The column of this expression; a name that is not taken, unless the same is there already."""
        same = [name for name, other in self.columns.items() if other == sql]
        if same and not self.is_volatile(sql):
            return same[0]
        base = hint if is_name(hint) else "value"
        name, repeat = base, 2
        while name in self.columns or name in self.below or name in _TAKEN:
            name, repeat = f"{base}_{repeat}", repeat + 1
        self.columns[name] = sql
        return name


def layout_over(query: Query, relation: Relation) -> Layout:
    """An empty layout over the columns of a relation's node."""
    return Layout(below=frozenset(query.graph.columns(relation.node)), is_volatile=query.is_volatile)


def hidden_columns(query: Query, relation: Relation) -> list[str]:
    """What operators above need beside what the query names: event time and window."""
    wanted = [relation.time] if relation.time else []
    wanted += WINDOW_COLUMNS if relation.window is not None else ()
    present = query.graph.columns(relation.node)
    return [name for name in dict.fromkeys(wanted) if name in present]


def provide(
    query: Query,
    relation: Relation,
    plan: LogicalPlan,
    wanted: Mapping[str, Expr],
    *,
    keeps_fields: bool,
    is_exact: bool = False,
) -> tuple[Relation, dict[str, str]]:
    """The relation with expressions as columns, and the name of each by its hint.

    With `keeps_fields` all of its fields become columns, too; else none of them can be read afterwards. Columns
    that nobody needs may stay unless `is_exact`, which is for operators that keep whole rows.
    """
    printer = query.printer(relation, plan)
    layout = layout_over(query, relation)
    fields = [_kept(query, relation, layout, each) for each in (relation.fields if keeps_fields else ())]
    names = {}
    for hint, expression in wanted.items():
        found = printer.field(expression)
        if found is not None and found.column is not None:
            names[hint] = layout.copy(found.column)
        else:
            names[hint] = layout.compute(hint, found.sql if found is not None else printer.sql(expression))
    for column in hidden_columns(query, relation):
        layout.copy(column)
    node = project(query, relation.node, layout.columns, is_exact=is_exact)
    return replace(relation, node=node, fields=tuple(fields)), names


def _kept(query: Query, relation: Relation, layout: Layout, each: Field) -> Field:
    if each.window is not None and relation.window is not None and each.window.start == "window_start":
        return each
    if relation.ranking is not None and each.column == relation.ranking.column:
        return each
    if each.column is not None:
        layout.copy(each.column)
        return each
    column = layout.compute(each.name, each.sql)
    return replace(each, column=column, sql=quote(column), window=None)


def project(
    query: Query,
    node: str,
    columns: Mapping[str, str],
    *,
    is_exact: bool,
    is_ordered: bool = False,
    role: str = "columns",
) -> str:
    """A node with these columns; `node` itself where it has them already, with `is_ordered` in this order."""
    if not columns:
        # Only how many rows there are is asked for, and there are no rows without columns.
        return node
    present = [name for name in query.graph.columns(node) if name != UPDATING_META]
    copied = [name for name, sql in columns.items() if sql == quote(name) and name in present]
    computed = {name: sql for name, sql in columns.items() if name not in copied}
    if is_ordered and not computed and copied == present:
        return node
    if not is_ordered and not computed and (not is_exact or set(copied) == set(present)):
        return node
    config: dict[str, object]
    if is_ordered and [*copied, *computed] != list(columns):
        config = {"expressions": dict(columns)}
    else:
        config = {"keep": copied} if copied else {}
        if computed:
            config["expressions"] = computed
    return query.add(role, "std.project", [node], config)


def settled(query: Query, relation: Relation) -> Relation:
    """The relation with every field as a column, and no other columns but the hidden ones."""
    layout = layout_over(query, relation)
    fields = tuple(_kept(query, relation, layout, each) for each in relation.fields)
    for column in hidden_columns(query, relation):
        layout.copy(column)
    node = project(query, relation.node, layout.columns, is_exact=True)
    return replace(relation, node=node, fields=fields)
