"""The tables of a script as rows of nodes: sources with generated columns and watermarks, memory tables, lookups."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

import pyarrow as pa

from arroyo_core.api.units import format_duration_us
from arroyo_core.errors import Location, PipelineError
from arroyo_core.plugin import PluginSet
from arroyo_sql.connectors import is_lookup, is_memory, lookup_of, source_of
from arroyo_sql.planned import Connection
from arroyo_sql.planner.errors import explain
from arroyo_sql.planner.expressions import Printer
from arroyo_sql.planner.graph import AbandonedError, Graph
from arroyo_sql.planner.relations import UPDATING_META, Field, Relation, quote
from arroyo_sql.planner.rewriting import QueryText, duration_us, rewrite
from arroyo_sql.planner.session import Session
from arroyo_sql.planner.sql_types import cast_sql, plain, same, sql_name
from arroyo_sql.script import Column, Table, Text

_LATENESS = re.compile(r"""\(?\s*"?(\w+)"?\s*-\s*interval\s+'([^']*)'\s*(\w+)?\s*\)?""", re.IGNORECASE)
_CLOCKS = frozenset({"now", "current_timestamp", "proctime"})
_SCRATCH = "__generated"


@dataclass(slots=True)
class Catalogue:
    """What a script has declared so far. `relations` are what was read of it already."""

    graph: Graph
    session: Session
    plugins: PluginSet
    tables: dict[str, Table] = field(default_factory=dict)
    relations: dict[str, Relation] = field(default_factory=dict)
    #: Of which mistakes are recorded already.
    failed: set[str] = field(default_factory=set)

    def declare(self, name: str, relation: Relation) -> None:
        """Make rows known under a name, to DataFusion as well."""
        self.relations[name] = relation
        self.session.register(name, [pa.field(each.name, each.type or pa.string()) for each in relation.fields])

    def has(self, name: str) -> bool:
        return name in self.relations or name in self.tables

    def scan(self, name: str, *, used_at: Location | None = None) -> Relation:
        """The rows of a table; raises `PipelineError`, or `AbandonedError` after recording mistakes.

        `used_at` is where a query names it.
        """
        if name not in self.relations:
            if name in self.failed:
                raise AbandonedError
            try:
                self.declare(name, self._read(self.tables[name], used_at))
            except (AbandonedError, PipelineError):
                self.failed.add(name)
                raise
        return self.relations[name]

    def lookup(self, table: Table) -> Connection:
        connection = lookup_of(table, plugins=self.plugins, mistakes=self.graph.mistakes)
        if connection is None:
            raise AbandonedError
        return connection

    def _read(self, table: Table, used_at: Location | None) -> Relation:
        if is_lookup(table):
            fields = tuple(Field.of_column(column.name, column.type, name=column.name) for column in table.columns)
            if not fields:
                raise PipelineError("a table that is looked up needs its columns", at=table.at, value=table.name)
            return Relation("", fields, None, lookup=table)
        if is_memory(table):
            raise PipelineError(
                f"{table.name!r} is a table in memory, and nothing is inserted into it before it is read",
                at=table.at,
                value=table.name,
            )
        connection = source_of(table, plugins=self.plugins, mistakes=self.graph.mistakes, used_at=used_at)
        if connection is None:
            raise AbandonedError
        node = self.graph.connect(table.name, connection, [])
        return self._columns(table, node)

    def _columns(self, table: Table, node: str) -> Relation:
        stream = self.graph.schema(node)
        physical = [column for column in table.columns if column.generated is None]
        for column in physical:
            _check(column, stream.schema, table)
        names = [column.name for column in physical] or [name for name in stream.names if name != UPDATING_META]
        fields = [Field.of_column(name, stream.schema.field(name).type, name=name) for name in names]
        base = Relation(node, tuple(fields), stream.timestamp_column, UPDATING_META in stream.names)
        generated = {column.name: self._generated(table, base, column) for column in table.columns if column.generated}
        if table.columns and physical:
            by_name = {each.name: each for each in [*fields, *generated.values()]}
            fields = [by_name[column.name] for column in table.columns]
        else:
            fields += generated.values()
        return self._timed(table, replace(base, fields=tuple(fields)))

    def _generated(self, table: Table, base: Relation, column: Column) -> Field:
        assert column.generated is not None
        sql, kind = self._printed(base, rewrite(column.generated, name_of=lambda index: _SCRATCH))
        printed = sql if same(kind, column.type) else cast_sql(sql, column.type)
        if printed is None:
            raise PipelineError(f"a generated column cannot be a {sql_name(column.type)}", at=column.type_at)
        return Field(None, column.name, printed, column.type)

    def _expression(self, base: Relation, text: Text) -> str:
        """SQL over the columns of the node, of an expression over the columns of the table."""
        return self._printed(base, rewrite(text, name_of=lambda index: _SCRATCH))[0]

    def _printed(self, base: Relation, text: QueryText) -> tuple[str, pa.DataType]:
        """The expression, and its type."""
        self.session.register(_SCRATCH, [pa.field(each.name, each.type) for each in base.fields])
        table = self.session.context.table(_SCRATCH)
        try:
            # Typed as in a query, so that what cannot be computed is found here.
            parsed = table.parse_sql_expr(text.sql)
            kind = plain(table.select(parsed.alias("x")).schema().field(0).type)
        except Exception as error:
            raise explain(error, text, tables=()) from error
        known = {each.name: each for each in base.fields}

        def find(qualifier: str | None, name: str) -> Field:
            return known[name]

        def time() -> Field:
            raise text.refuse(
                "row_time() is not there for columns that are generated: write the column of the event time",
                ("row_time",),
            )

        printer = Printer(
            find,
            time,
            lambda each: plain(table.select(each.alias("x")).schema().field(0).type),
            lambda message, words: text.refuse(message, words),
        )
        return printer.sql(parsed), kind

    def _timed(self, table: Table, relation: Relation) -> Relation:
        """With a watermark, where the table has an event time."""
        option = table.options.get("event_time_field")
        watermark = table.watermark
        time = watermark.column if watermark is not None else str(option.value) if option is not None else relation.time
        if time is None:
            return relation
        at = watermark.at if watermark is not None else option.at if option is not None else table.at
        found = next((each for each in relation.fields if each.name == time), None)
        if found is None and watermark is None and option is None:
            return replace(relation, time=None)
        if found is None:
            known = [each.name for each in relation.fields]
            raise PipelineError(f"there is no column {time!r} for the event time", at=at, value=time, allowed=known)
        if found.type is not None and not pa.types.is_timestamp(found.type):
            raise PipelineError(
                f"an event time is a TIMESTAMP, and {time!r} is a {sql_name(found.type)}", at=at, value=time
            )
        generated = next((column.generated for column in table.columns if column.name == time), None)
        if generated is not None and self._is_clock(relation, generated):
            # Windows of the time at which rows arrive need no watermark.
            return replace(relation, time=None, is_by_clock=True)
        if found.column is None:
            relation, found = self._stored(table, relation, found)
        config: dict[str, object] = {"column": found.column}
        config.update(self._lateness(table, relation))
        node = self.graph.add(f"{table.name}_in_time", "std.watermark", [relation.node], config, at=at)
        return replace(relation, node=node, time=found.column)

    def _is_clock(self, relation: Relation, text: Text) -> bool:
        return re.fullmatch(r"\s*\(?\s*(\w+)\s*(\(\s*\))?\s*\)?\s*", text.sql) is not None and any(
            word in text.sql.lower() for word in _CLOCKS
        )

    def _stored(self, table: Table, relation: Relation, field: Field) -> tuple[Relation, Field]:
        """The relation with a generated column as a column of its node."""
        present = [name for name in self.graph.columns(relation.node) if name != UPDATING_META]
        config = {"keep": present, "expressions": {field.name: field.sql}}
        node = self.graph.add(f"{table.name}_generated", "std.project", [relation.node], config, at=table.at)
        stored = replace(field, column=field.name, sql=quote(field.name))
        fields = tuple(stored if each is field else each for each in relation.fields)
        return replace(relation, node=node, fields=fields), stored

    def _lateness(self, table: Table, relation: Relation) -> dict[str, object]:
        if table.watermark is None or table.watermark.expression is None:
            return {"max_lateness": "1s"}
        text = table.watermark.expression
        if (
            re.fullmatch(r"\(?\s*\"?(\w+)\"?\s*\)?", text.sql.strip())
            and text.sql.strip(' ()"').lower() == table.watermark.column.lower()
        ):
            return {"max_lateness": "0s"}
        found = _LATENESS.fullmatch(text.sql.strip())
        if found is not None and found[1].lower() == table.watermark.column.lower():
            lateness = duration_us(f"{found[2]} {found[3] or ''}".strip())
            if lateness is not None:
                return {"max_lateness": format_duration_us(lateness)}
        physical = replace(relation, fields=tuple(each for each in relation.fields if each.column is not None))
        return {"expression": self._expression(physical, text)}


def _check(column: Column, schema: pa.Schema, table: Table) -> None:
    """Raise `PipelineError` where a declared column is not what the source gives."""
    if column.name not in schema.names:
        raise PipelineError(
            f"the source of {table.name!r} has no column {column.name!r}",
            at=column.at,
            value=column.name,
            allowed=schema.names,
        )
    given = schema.field(column.name).type
    if not same(given, column.type) and not (pa.types.is_timestamp(given) and pa.types.is_timestamp(column.type)):
        raise PipelineError(
            f"the source gives {column.name!r} as {sql_name(given)}, not as {sql_name(column.type)}: declare that, "
            f"and cast it in the query",
            at=column.type_at,
            value=column.name,
        )
