"""Joins with tables that are looked up."""

from __future__ import annotations

from dataclasses import replace

from datafusion import Expr, LogicalPlan

from arroyo_core.api import ArroyoSchema
from arroyo_sql.planner.columns import hint_of, provide
from arroyo_sql.planner.join_sides import Pair, Side
from arroyo_sql.planner.query import Query
from arroyo_sql.planner.relations import Field, Relation
from arroyo_sql.planner.rows import bare, where


def lookup_join(
    query: Query,
    plan: LogicalPlan,
    kind: str,
    left: Side,
    right: Side,
    pairs: list[Pair],
    conditions: list[Expr],
) -> Relation:
    if left.relation.lookup is not None:
        swapped = {"Inner": "Inner", "Right": "Left"}.get(kind)
        if swapped is None or right.relation.lookup is not None:
            raise query.refuse("a table that is looked up stands right of a stream, in JOIN or LEFT JOIN", "join")
        out = lookup_join(
            query, plan, swapped, right, left, [Pair(pair.right, pair.left) for pair in pairs], conditions
        )
        count = len(right.relation.fields)
        return replace(out, fields=(*out.fields[count:], *out.fields[:count]))
    table = right.relation.lookup
    assert table is not None
    if kind not in ("Inner", "Left"):
        raise query.refuse("a table that is looked up is joined by JOIN or LEFT JOIN", "join")
    filters = [*right.relation.pending, *conditions]
    if not pairs:
        raise query.refuse(f"{table.name!r} is looked up by a column: ON a.x = {table.name}.y", "on", "join")
    side = Side(query.real(left.relation), left.plan)
    wanted = {hint_of(pair.left, f"key_{index + 1}"): pair.left for index, pair in enumerate(pairs)}
    relation, names = provide(query, side.relation, side.plan, wanted, keeps_fields=True)
    printer = query.printer(right.relation, right.plan)
    on = []
    for hint, pair in zip(wanted, pairs, strict=True):
        field = printer.field(pair.right)
        if field is None or field.column is None:
            raise query.refuse(f"a lookup compares columns of {table.name!r} as they are: cast the other side", "on")
        on.append({"left": names[hint], "right": field.column})
    connection = query.tables.lookup(table)
    config = {**connection.config, "on": on, **({"type": "left"} if kind == "Left" else {})}
    if filters and kind == "Left":
        # Rows without a match stay, so what a match must fulfil is the operator's to know.
        matches = query.graph.type_of_connection(replace(connection, config=config), [relation.node])
        found = _looked_up(query, "", matches, relation, _with_all(right.relation))
        printer = query.printer(found, plan)
        config["condition"] = bare(" AND ".join(printer.sql(condition) for condition in filters))
        filters = []
    id = query.graph.connect(f"{query.hint}_lookup", replace(connection, config=config), [relation.node])
    schema = query.graph.schema(id)
    out = _looked_up(query, id, schema, relation, right.relation)
    found = where(query, _looked_up(query, id, schema, relation, _with_all(right.relation)), plan, filters)
    return replace(out, node=found.node)


def _with_all(right: Relation) -> Relation:
    """With the columns of the table that are only read by conditions, under the table's own name."""
    assert right.lookup is not None
    name = right.lookup.name
    present = {(field.qualifier, field.name) for field in right.fields}
    others = [column for column in right.lookup.columns if (name, column.name) not in present]
    hidden = [Field.of_column(each.name, each.type, name=each.name, qualifier=name) for each in others]
    return replace(right, fields=(*right.fields, *hidden))


def _looked_up(query: Query, node: str, schema: ArroyoSchema, left: Relation, right: Relation) -> Relation:
    mine = query.graph.columns(left.node)
    fields = list(left.fields)
    for field in right.fields:
        column = f"right_{field.column}" if field.column in mine else str(field.column)
        if column not in schema.names:
            raise query.refuse(f"the table that is looked up has no column {field.column!r}", str(field.name))
        fields.append(
            Field.of_column(column, schema.schema.field(column).type, name=field.name, qualifier=field.qualifier)
        )
    return replace(left, node=node, fields=tuple(fields), time=schema.timestamp_column)
