"""GROUP BY: with a window, with the window that rows are in, or over the whole stream; and DISTINCT."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from datafusion import Expr, LogicalPlan

from arroyo_core.api.units import format_duration_us
from arroyo_sql.planner.aggregates import Aggregate, Reader
from arroyo_sql.planner.columns import hint_of, project, provide, settled
from arroyo_sql.planner.expressions import WINDOW_FUNCTIONS, Printer, call_of, literal_value, peel, unalias, wrap
from arroyo_sql.planner.literals import interval_us, text_sql
from arroyo_sql.planner.query import Query
from arroyo_sql.planner.relations import UPDATING_META, WINDOW_COLUMNS, Field, Relation, Window, quote
from arroyo_sql.planner.rewriting import duration_us, make_window

#: The key that holds the start of a session while its rows are grouped again.
_SESSION_START = "session_start"


@dataclass(frozen=True, slots=True)
class Group:
    """One expression of GROUP BY: `edge` is `start`, `end`, `time` or `window` where it is (of) a window."""

    expression: Expr
    qualifier: str | None
    name: str
    edge: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Grouping:
    groups: tuple[Group, ...]
    window: Window | None
    #: Whether the window is the one that rows are in already.
    is_own: bool


def aggregate(query: Query, plan: LogicalPlan, variant: Any) -> Relation:
    below = plan.inputs()[0]
    relation = query.visit(below)
    if relation.ranking is not None or relation.lookup is not None:
        relation = query.real(relation)
    grouping = _read_groups(query, relation, [wrap(each) for each in variant.group_by_exprs()])
    pending = relation.pending
    relation = replace(relation, pending=())
    if relation.virtual is not None and (grouping.window is None or not grouping.is_own):
        relation = query.real(relation)
        grouping = _read_groups(query, relation, [group.expression for group in grouping.groups])
    if grouping.is_own and relation.virtual is not None:
        # Rows need not be put into their windows one by one: the aggregate does it.
        grouping, relation = replace(grouping, is_own=False), replace(relation, virtual=None)
    wanted = {str(group.hint): group.expression for group in grouping.groups if group.hint is not None}
    printer = query.printer(relation, below)
    reader = Reader(query, relation, below, printer, dict(wanted))
    aggregates = [reader.read(wrap(each)) for each in variant.aggregate_exprs()]
    if not aggregates and grouping.window is None:
        out = _distinct_keys(query, relation, below, grouping)
    else:
        names_of_keys = set(wanted)
        relation, names = provide(query, relation, below, reader.wanted, keeps_fields=False)
        keys = list(dict.fromkeys(names[hint] for hint in names_of_keys_in_order(grouping, names_of_keys)))
        out = _grouped(query, relation, grouping, keys, names, aggregates)
    if not pending:
        return out
    if grouping.window is None:
        return replace(out, pending=pending)
    return _conditions(query, out, plan, list(pending))


def names_of_keys_in_order(grouping: Grouping, wanted: set[str]) -> list[str]:
    return [group.hint for group in grouping.groups if group.hint in wanted and group.hint is not None]


def _read_groups(query: Query, relation: Relation, expressions: list[Expr]) -> Grouping:
    printer = query.printer(relation, None)
    window, is_own, hints = None, False, set[str]()
    groups = []
    in_windows = relation.window or relation.virtual
    for index, expression in enumerate(expressions):
        if expression.variant_name() == "GroupingSet":
            raise query.refuse(
                "GROUPING SETS, ROLLUP and CUBE are not planned: write one query for each set, and UNION ALL",
                "grouping sets",
                "rollup",
                "cube",
            )
        inner = unalias(expression)
        qualifier, name = _name_of(expression)
        call, arguments = call_of(inner)
        field = printer.field(inner)
        if call in WINDOW_FUNCTIONS:
            found = _window_of(query, relation, str(call), arguments)
            if window is not None and window.spec != found.spec:
                raise query.refuse(
                    "GROUP BY has one window: group the rows of the first one in a query around it", str(call)
                )
            window = found
            groups.append(Group(expression, qualifier, name, edge="window"))
            continue
        edge = _edge(relation, field, call, arguments, printer)
        if edge is not None:
            window, is_own = in_windows, True
            groups.append(Group(expression, qualifier, name, edge=edge))
            continue
        base = hint_of(expression, f"key_{index + 1}")
        hint, repeat = base, 2
        while hint in hints:
            hint, repeat = f"{base}_{repeat}", repeat + 1
        hints.add(hint)
        groups.append(Group(expression, qualifier, name, hint=hint))
    # Another window than that of the rows is one of their event times.
    is_own = is_own or (window is not None and in_windows is not None and window.spec == in_windows.spec)
    return Grouping(tuple(groups), window, is_own)


def _name_of(expression: Expr) -> tuple[str | None, str]:
    if expression.variant_name() == "Column":
        column = expression.to_variant()
        return column.relation(), str(column.name())
    return None, str(expression.schema_name())


def _edge(relation: Relation, field: Field | None, call: str | None, arguments: list[Expr], printer: Any) -> str | None:
    """Which end of the rows' window an expression is, or the window itself."""
    if relation.window is None and relation.virtual is None:
        return None
    if field is not None:
        if field.window is not None:
            return "window"
        return field.column.removeprefix("window_") if field.column in WINDOW_COLUMNS else None
    if call == "get_field" and len(arguments) == 2:
        base = printer.field(arguments[0])
        if base is not None and base.window is not None:
            return str(literal_value(arguments[1]))
    return None


def _window_of(query: Query, relation: Relation, name: str, arguments: list[Expr]) -> Window:
    shown = "window" if name.startswith("spark") else name
    if name in ("spark_window", "spark_hop", "session_window"):
        field = query.printer(relation, None).field(peel(arguments[0]))
        if field is None or field.column is None or field.column != relation.time:
            raise query.refuse(
                f"{shown}() is of the event time of the rows"
                + (f", {relation.time!r}" if relation.time else ": declare WATERMARK FOR a column of the table"),
                shown,
            )
        arguments = arguments[1:]
    sizes = []
    for argument in arguments:
        inner = peel(argument)
        if inner.variant_name() != "Literal":
            raise query.refuse(f"the size of {shown}() is a constant: INTERVAL '10 seconds'", shown)
        value = literal_value(inner)
        size = duration_us(value) if isinstance(value, str) else interval_us(value)
        if size is None:
            raise query.refuse(f"the size of {shown}() has a fixed length: write days or less, not months", shown)
        sizes.append(size)
    kind = {"spark_window": "tumble", "spark_hop": "hop", "session_window": "session"}.get(name, name)
    return make_window(kind, sizes[::-1] if name == "spark_hop" else sizes, at=query.text.find(shown))


def _grouped(
    query: Query,
    relation: Relation,
    grouping: Grouping,
    keys: list[str],
    names: dict[str, str],
    aggregates: list[Aggregate],
) -> Relation:
    """The node that groups, and what the query calls its columns."""
    for made in aggregates:
        while made.name in keys:
            made.name += "_"
    config: dict[str, Any] = {"keys": keys} if keys else {}
    if aggregates:
        config["aggregates"] = [made.config(names) for made in aggregates]
    if grouping.window is None:
        # Without GROUP BY there is a row also where there are none to aggregate.
        empty = {} if grouping.groups else {"empty_group": True}
        node = query.add(
            "groups", "std.updating_aggregate", [relation.node], {**config, **query.ttl_or(None), **empty}, "group by"
        )
        window = None
    else:
        window = replace(grouping.window, start="window_start", end="window_end")
        node = _windowed(query, relation, grouping, window, config)
    schema = query.graph.schema(node)
    fields = []
    for group in grouping.groups:
        if group.edge == "window":
            assert window is not None
            fields.append(Field.of_window(window, name=group.name, qualifier=group.qualifier))
        else:
            column = f"window_{group.edge}" if group.edge is not None else names[str(group.hint)]
            kind = schema.schema.field(column).type
            fields.append(Field.of_column(column, kind, name=group.name, qualifier=group.qualifier))
    for made in aggregates:
        kind = schema.schema.field(made.name).type
        fields.append(Field.of_column(made.name, kind, name=str(made.expression.schema_name())))
    return Relation(node, tuple(fields), schema.timestamp_column, UPDATING_META in schema.names, window)


def _windowed(query: Query, relation: Relation, grouping: Grouping, window: Window, config: dict[str, Any]) -> str:
    if relation.is_updating:
        raise query.refuse(
            "rows that change are in no window: group by the window first, and aggregate that",
            "tumble",
            "hop",
            "session",
            "window",
        )
    if relation.time is None and not relation.is_by_clock:
        raise query.refuse(
            "windows need an event time: declare WATERMARK FOR a TIMESTAMP column in CREATE TABLE, or a column "
            "GENERATED ALWAYS AS (now()) for the time at which rows arrive",
            "tumble",
            "hop",
            "session",
            "window",
        )
    clock = {} if relation.time else {"time": "processing"}
    if grouping.is_own and window.kind == "session":
        return _sessions_again(query, relation, config)
    if grouping.is_own or window.kind == "tumble":
        size = window.slide_us or window.size_us
        settings = {"size": format_duration_us(size), **clock, **config}
        node = query.add("windows", "std.tumbling_window", [relation.node], settings, "group by")
        return node if not window.slide_us else _with_start(query, node, window)
    if window.kind == "hop":
        assert window.slide_us is not None
        sizes = {"size": format_duration_us(window.size_us), "slide": format_duration_us(window.slide_us)}
        return query.add("windows", "std.sliding_window", [relation.node], {**sizes, **clock, **config}, "group by")
    settings = {"gap": format_duration_us(window.size_us), **clock, **config}
    return query.add("sessions", "std.session_window", [relation.node], settings, "group by")


def _with_start(query: Query, node: str, window: Window) -> str:
    """Rows of one overlapping window all lie in its last slide, and so were grouped by that."""
    start = f"window_end - INTERVAL {text_sql(f'{window.size_us} microseconds')}"
    columns = {name: quote(name) for name in query.graph.columns(node) if name != "window_start"}
    return project(query, node, {**columns, "window_start": start}, is_exact=False, role="own_windows")


def _sessions_again(query: Query, relation: Relation, config: dict[str, Any]) -> str:
    """Rows of one session share their event time, its end less a microsecond: a window of that size is the session."""
    columns = {name: quote(name) for name in query.graph.columns(relation.node) if name != "window_start"}
    start = {_SESSION_START: "window_start"}
    node = project(query, relation.node, {**columns, **start}, is_exact=False, role="session_columns")
    keys = [*config.get("keys", []), _SESSION_START]
    node = query.add("own_sessions", "std.tumbling_window", [node], {"size": "1us", **config, "keys": keys})
    kept = {name: quote(name) for name in query.graph.columns(node) if name not in (_SESSION_START, "window_start")}
    return project(query, node, {**kept, "window_start": _SESSION_START}, is_exact=False, role="own_windows")


def _conditions(query: Query, out: Relation, plan: LogicalPlan, pending: list[Expr]) -> Relation:
    """Conditions on the window that DataFusion moved below the aggregate, made above it."""
    window = next(field for field in out.fields if field.window is not None).window
    assert window is not None
    printer = query.printer(out, plan)
    printed = [_on_window(printer, part, window) for part in pending]
    node = query.add("where", "std.filter", [out.node], {"predicate": " AND ".join(printed)})
    return replace(out, node=node)


@dataclass(frozen=True, slots=True)
class _OfWindow(Printer):
    """Prints `tumble(...)` as the window that rows are in."""

    window: Window

    def function(self, expression: Expr) -> str:
        name, arguments = call_of(expression)
        if name == "get_field" and call_of(unalias(arguments[0]))[0] in WINDOW_FUNCTIONS:
            return {"start": self.window.start, "end": self.window.end}[str(literal_value(arguments[1]))]
        return self.window.struct_sql if name in WINDOW_FUNCTIONS else Printer.function(self, expression)


def _on_window(printer: Printer, part: Expr, window: Window) -> str:
    """A condition on `tumble(...)` as one on the columns of the window."""
    return _OfWindow(printer.find, printer.time, printer.type_of, printer.refuse, window).sql(part)


def distinct(query: Query, plan: LogicalPlan, variant: Any) -> Relation:
    # One class stands for both: only the text of the plan tells them apart.
    if not plan.display().startswith("Distinct:"):
        raise query.refuse(
            "DISTINCT ON is not planned: write row_number() OVER (PARTITION BY ... ORDER BY ...) AS n, and WHERE n = 1 "
            "in a query around it",
            "distinct",
        )
    relation = settled(query, query.rows(plan.inputs()[0]))
    keys = [field.column for field in relation.fields if field.column is not None]
    if any(field.window is not None for field in relation.fields):
        keys += ["window_start", "window_end"]
    return _once(query, relation, list(dict.fromkeys(keys)))


def _distinct_keys(query: Query, relation: Relation, plan: LogicalPlan, grouping: Grouping) -> Relation:
    """GROUP BY without aggregates: each key once."""
    wanted = {str(group.hint): group.expression for group in grouping.groups}
    if not wanted:
        raise query.refuse("GROUP BY needs a column or an aggregate", "group by")
    relation, names = provide(query, relation, plan, wanted, keeps_fields=False, is_exact=True)
    fields = tuple(
        Field.of_column(
            names[str(group.hint)],
            query.kind(relation.node, names[str(group.hint)]),
            name=group.name,
            qualifier=group.qualifier,
        )
        for group in grouping.groups
    )
    return _once(query, replace(relation, fields=fields), list(dict.fromkeys(names.values())))


def _once(query: Query, relation: Relation, keys: list[str]) -> Relation:
    if not relation.is_updating:
        # Without event time there is nothing to forget a key by.
        ttl = query.ttl_or("0s") if relation.time else {"ttl": "0s"}
        config: dict[str, Any] = {"keys": keys, **ttl}
        node = query.add(
            "distinct",
            "std.deduplicate",
            [relation.node],
            config,
            "distinct",
            "group by",
            "union",
            "intersect",
            "except",
        )
        # A key has no event time and no window of its own, only its first row has, unless these are part of the key.
        has_window = {"window_start", "window_end"} <= set(keys)
        return replace(
            relation,
            node=node,
            time=relation.time if has_window or relation.time in keys else None,
            window=relation.window if has_window else None,
        )
    rows = {"function": "count", "as": "rows_of_key"}
    config = {"keys": keys, "aggregates": [rows], **query.ttl_or(None)}
    node = query.add(
        "distinct",
        "std.updating_aggregate",
        [relation.node],
        config,
        "distinct",
        "group by",
        "union",
        "intersect",
        "except",
    )
    return replace(relation, node=node, time=None, window=None)
