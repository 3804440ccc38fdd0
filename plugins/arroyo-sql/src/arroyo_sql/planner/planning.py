"""A script as nodes: statement by statement, so that each mistake is found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pyarrow as pa
from datafusion import DataFrame, LogicalPlan

from arroyo_core.api.units import format_duration_us
from arroyo_core.errors import Location, OutOfTimeError, PipelineError
from arroyo_core.pipeline.environment import Environment
from arroyo_core.pipeline.mistakes import Mistakes
from arroyo_core.plugin import PluginSet
from arroyo_sql.connectors import is_lookup, is_memory, is_source
from arroyo_sql.planned import Node, PlannedQuery
from arroyo_sql.planner import groups, joins, ranks, rows, sets
from arroyo_sql.planner.checks import check_constant_conditions, check_words
from arroyo_sql.planner.columns import settled
from arroyo_sql.planner.errors import explain
from arroyo_sql.planner.graph import AbandonedError, Graph
from arroyo_sql.planner.optimising import optimised
from arroyo_sql.planner.query import Inlined, Query, Visit
from arroyo_sql.planner.query_tokens import tokens_of
from arroyo_sql.planner.relations import UPDATING_META, Relation
from arroyo_sql.planner.rewriting import QueryText, TableFunction, duration_us, rewrite
from arroyo_sql.planner.session import Session, with_types
from arroyo_sql.planner.sinks import Part, Sinks
from arroyo_sql.planner.tables import Catalogue
from arroyo_sql.script import Insert, Script, Setting, Statement, Table, Text, View

#: What a plan may consist of; every other step is refused.
VISITS: Mapping[str, Visit] = {
    "TableScan": rows.scan,
    "SubqueryAlias": rows.alias,
    "Projection": rows.projection,
    "Filter": rows.condition,
    "Unnest": rows.unnest,
    "Aggregate": groups.aggregate,
    "Distinct": groups.distinct,
    "WindowExpr": ranks.window_functions,
    "Join": joins.join,
    "Union": sets.union,
    "Sort": sets.sort,
    "Limit": sets.limit,
    "Values": sets.no_table,
    "EmptyRelation": sets.no_table,
    "Subquery": sets.subquery,
}
#: Begins the ids of nodes of queries that are only printed.
PREVIEW = "query"


@dataclass(slots=True)
class ScriptPlanner:
    """Plans the statements of one script."""

    script: Script
    plugins: PluginSet
    environment: Environment
    mistakes: Mistakes
    ttl: str | None = None
    functions: dict[str, TableFunction] = field(default_factory=dict)
    views: dict[str, View] = field(default_factory=dict)
    texts: dict[str, QueryText] = field(default_factory=dict)
    #: The `updating_ttl` that stands before each view.
    ttls: dict[str, str | None] = field(default_factory=dict)
    #: What is inserted into each memory table, so far.
    memory: dict[str, list[Part]] = field(default_factory=dict)
    #: Views whose queries are being planned.
    opening: set[str] = field(default_factory=set)
    #: Views whose queries are part of those that read them.
    inlined: set[str] = field(default_factory=set)
    graph: Graph = field(init=False)
    session: Session = field(init=False)
    catalogue: Catalogue = field(init=False)
    sinks: Sinks = field(init=False)

    def __post_init__(self) -> None:
        self.graph = Graph(self.plugins, self.environment, self.mistakes)
        self.session = Session(self.plugins.registry)
        self.catalogue = Catalogue(self.graph, self.session, self.plugins)
        self.sinks = Sinks(self.graph, self.catalogue)

    def plan(self) -> PlannedQuery | None:
        for statement in self.script.statements:
            with self._mistakes_of(statement):
                self._statement(statement)
        for name in [name for name in self.views if name not in self.inlined]:
            # Views that nobody reads have mistakes to report, too.
            with self._mistakes_of(self.views[name]):
                self._materialise(name)
        ends = []
        for target in self.sinks.targets():
            with self._mistakes():
                ends.append(self.sinks.write(target))
        if self.mistakes or not ends:
            if not self.mistakes:
                self.mistakes.add(
                    "the script has no query: add an INSERT INTO, or a SELECT", at=Location(self.script.file, 1, 1)
                )
            return None
        return PlannedQuery(tuple(self._optimised(ends)))

    def _optimised(self, ends: Sequence[str]) -> list[Node]:
        return optimised(self.graph, ends)

    @contextmanager
    def _mistakes(self) -> Iterator[None]:
        try:
            yield
        except PipelineError as error:
            self.mistakes.add(
                error.message, at=error.at, value=error.value, allowed=error.allowed, suggestion=error.suggestion
            )
        except AbandonedError:
            pass

    @contextmanager
    def _mistakes_of(self, statement: Statement) -> Iterator[None]:
        """Records what is wrong with a statement; what it would have declared has failed."""
        is_done = False
        with self._mistakes():
            yield
            is_done = True
        name = statement.target if isinstance(statement, Insert) else getattr(statement, "name", None)
        if not is_done and name is not None and not (isinstance(statement, Insert) and not self._is_memory(name)):
            self.catalogue.failed.add(name)
            self.views.pop(name, None)

    def _is_memory(self, name: str) -> bool:
        table = self.catalogue.tables.get(name)
        return table is not None and is_memory(table)

    def _statement(self, statement: Statement) -> None:
        match statement:
            case Setting(name="updating_ttl"):
                self._set_ttl(statement)
            case Table():
                self._table(statement)
            case View():
                self._claim(statement.name, statement.at)
                self.views[statement.name] = statement
                self.texts[statement.name] = self._rewritten(statement.query)
                self.ttls[statement.name] = self.ttl
            case Insert():
                self._insert(statement)

    def _set_ttl(self, setting: Setting) -> None:
        value = setting.value
        found = duration_us(value) if isinstance(value, str) else 0 if value == 0 else None
        if found is None and value != "0":
            raise PipelineError("updating_ttl is a duration: '1 hour', or 0 to keep all", at=setting.at, value=value)
        self.ttl = format_duration_us(found or 0)

    def _claim(self, name: str, at: Location) -> None:
        if name in self.catalogue.tables or name in self.views:
            raise PipelineError(f"there are two tables {name!r}", at=at, value=name)

    def _table(self, table: Table) -> None:
        self._claim(table.name, table.at)
        self.catalogue.tables[table.name] = table
        if table.query is not None:
            self._insert(Insert(table.name, table.at, table.query))

    def _insert(self, insert: Insert) -> None:
        if insert.target is None:
            relation, schema = self._query(self._rewritten(insert.query), PREVIEW, self.ttl)
            self.sinks.add(PREVIEW, Part(relation, schema, insert))
            return
        table = self.catalogue.tables.get(insert.target)
        if table is None:
            known = sorted(self.catalogue.tables)
            what = "a view: it cannot be written" if insert.target in self.views else "not a table"
            raise PipelineError(f"{insert.target!r} is {what}", at=insert.at, value=insert.target, allowed=known)
        types = _types_of(table, insert)
        relation, schema = self._query(self._rewritten(insert.query), table.name, self.ttl, into=types)
        if not is_memory(table):
            self.sinks.add(table.name, Part(relation, schema, insert))
            return
        parts = self.memory.setdefault(table.name, [])
        parts.append(Part(relation, schema, insert))
        if len(parts) == self._insert_count(table.name):
            self._declare(table.name, self.sinks.in_memory(table, parts))

    def _insert_count(self, name: str) -> int:
        """How many statements insert rows into a table."""
        return sum(
            statement.target == name if isinstance(statement, Insert) else statement.name == name
            for statement in self.script.statements
            if isinstance(statement, Insert) or (isinstance(statement, Table) and statement.query is not None)
        )

    def _rewritten(self, text: Text) -> QueryText:
        count = len(self.functions)
        found = rewrite(text, name_of=lambda index: f"__in_windows_{count + index + 1}")
        for function in found.table_functions:
            self.functions[function.name] = function
        for name, at in found.lookups:
            table = self.catalogue.tables.get(name)
            if table is None or str(getattr(table.options.get("type"), "value", "")).lower() != "lookup":
                raise PipelineError(
                    "FOR SYSTEM_TIME AS OF is for tables that are looked up: declare it WITH (type = 'lookup')", at=at
                )
        return found

    def _query(
        self, text: QueryText, hint: str, ttl: str | None, *, into: Sequence[pa.DataType] = ()
    ) -> tuple[Relation, pa.Schema]:
        """The rows of a query with their names and types; `into` are those that a NULL gets which has none."""
        check_words(text)
        self._prepare(text)
        frame, plan = self._planned(text, into)
        query = Query(
            self.graph,
            self.session,
            self.plugins.registry,
            self.catalogue,
            text,
            hint,
            VISITS,
            ttl=ttl,
            functions=self.functions,
            views={name: Inlined(self.texts[name], self.ttls[name]) for name in self.inlined},
        )
        if UPDATING_META in frame.schema().names:
            raise text.refuse(
                f"{UPDATING_META!r} is a name of the engine's own: give the column another", (UPDATING_META,)
            )
        return query.rows(plan), frame.schema()

    def _planned(self, text: QueryText, into: Sequence[pa.DataType]) -> tuple[DataFrame, LogicalPlan]:
        try:
            frame = with_types(self.session.query(text.sql), into)
            plan = frame.optimized_logical_plan()
        except (KeyboardInterrupt, OutOfTimeError, MemoryError):
            raise
        # DataFusion raises bare exceptions, and panics, for whatever reason.
        except BaseException as error:
            known = {*self.catalogue.tables, *self.views, *self.catalogue.relations}
            raise explain(error, text, tables=known) from error
        check_constant_conditions(frame.logical_plan(), plan, text)
        return frame, plan

    def _prepare(self, text: QueryText) -> None:
        """Make the tables known that a query reads."""
        words = {token.name for token in tokens_of(text.sql) if token.kind in ("word", "quoted")}
        for function in text.table_functions:
            words.add(function.table)
        if words & self.catalogue.failed:
            raise AbandonedError
        for name in sorted(words & set(self.views)):
            if self._is_inlined(name) and all(function.table != name for function in text.table_functions):
                self._inline(name)
            else:
                self._materialise(name)
        for name in sorted(words & set(self.catalogue.tables)):
            table = self.catalogue.tables[name]
            if not self._is_read(name, text):
                continue
            if is_memory(table):
                if name not in self.catalogue.relations:
                    message = f"{name!r} is a table in memory: read it below all that is inserted into it"
                    raise PipelineError(message, at=text.find(name), value=name)
                continue
            self.catalogue.scan(name, used_at=text.find(name))
        for function in text.table_functions:
            self._declare_function(function)

    def _is_read(self, name: str, text: QueryText) -> bool:
        """Whether the query has the name after FROM, JOIN or a comma: columns may have names of tables."""
        tokens = tokens_of(text.sql)
        before = [tokens[index - 1].word for index, token in enumerate(tokens) if index and token.name == name]
        is_read_only = is_source(self.catalogue.tables[name], self.plugins) or is_lookup(self.catalogue.tables[name])
        places = ("FROM", "JOIN", ",", "(") if is_read_only else ("FROM", "JOIN")
        follows = any(word in places for word in before)
        return follows or any(function.table == name for function in text.table_functions)

    def _declare_function(self, function: TableFunction) -> None:
        if function.table not in {*self.catalogue.tables, *self.views, *self.catalogue.relations}:
            known = sorted({*self.catalogue.tables, *self.views})
            raise PipelineError(
                f"there is no table {function.table!r}", at=function.at, value=function.table, allowed=known
            )
        relation = self.catalogue.scan(function.table)
        time = next((each.name for each in relation.fields if each.column == relation.time), None)
        if time != function.time:
            says = f"{time!r}" if time else "none: declare WATERMARK FOR a column"
            raise PipelineError(
                f"DESCRIPTOR is of the event time of {function.table!r}, which is {says}",
                at=function.time_at,
                value=function.time,
            )
        fields = [pa.field(each.name, each.type or pa.string()) for each in relation.fields]
        ends = [pa.field(name, pa.timestamp("us", "UTC")) for name in ("window_start", "window_end", "window_time")]
        self.session.register(function.name, [*fields, *ends])

    def _is_inlined(self, name: str) -> bool:
        """Whether one statement alone reads a view, and once."""
        if name in self.catalogue.relations or self.views[name].columns:
            return False
        before = []
        for statement in self.script.statements:
            text = getattr(statement, "query", None)
            if isinstance(text, Text):
                tokens = tokens_of(text.sql)
                before += [
                    tokens[index - 1].word
                    for index, token in enumerate(tokens)
                    if token.kind in ("word", "quoted")
                    and token.name == name
                    and not (index + 1 < len(tokens) and tokens[index + 1].text == ".")
                ]
        # Behind other words it is an alias, or a column.
        return len(before) == 1 and before[0] in ("FROM", "JOIN", ",", "(")

    def _inline(self, name: str) -> None:
        text = self.texts[name]
        self.inlined.add(name)
        with self._opening(name):
            check_words(text)
            self._prepare(text)
        try:
            self.session.register_view(name, self.session.query(text.sql))
        except (KeyboardInterrupt, OutOfTimeError, MemoryError):
            raise
        except BaseException as error:
            raise explain(error, text, tables={*self.catalogue.tables, *self.views}) from error

    @contextmanager
    def _opening(self, name: str) -> Iterator[None]:
        """Around the query of a view; raises where that reads the view itself."""
        if name in self.opening:
            raise PipelineError(f"the view {name!r} reads itself", at=self.views[name].at, value=name)
        self.opening.add(name)
        try:
            yield
        finally:
            self.opening.discard(name)

    def _materialise(self, name: str) -> None:
        """Make the nodes of a view, once for all that read it."""
        if name in self.catalogue.relations:
            return
        view = self.views[name]
        with self._opening(name):
            relation, schema = self._query(self.texts[name], name, self.ttls[name])
        names = list(view.columns) or list(schema.names)
        if len(names) != len(relation.fields):
            raise PipelineError(
                f"the view has {len(names)} columns, and its query {len(relation.fields)}", at=view.at, value=name
            )
        fields = tuple(
            replace(each, name=new, qualifier=None) for each, new in zip(relation.fields, names, strict=True)
        )
        self._declare(name, replace(relation, fields=fields))

    def _declare(self, name: str, relation: Relation) -> None:
        query = Query(
            self.graph,
            self.session,
            self.plugins.registry,
            self.catalogue,
            self._plain_text(name),
            name,
            VISITS,
        )
        self.catalogue.declare(name, self.sinks.typed(settled(query, relation)))

    def _plain_text(self, name: str) -> QueryText:
        return (
            self.texts[name] if name in self.texts else rewrite(Text("", Location(self.script.file, 1, 1)), name_of=str)
        )


def _types_of(table: Table, insert: Insert) -> list[pa.DataType]:
    """The types of the columns that rows are inserted into; none where the table does not declare them all."""
    declared = {column.name: column.type for column in table.columns if column.generated is None}
    chosen = list(insert.columns) or list(declared)
    return [declared[name] for name in chosen] if all(name in declared for name in chosen) else []
