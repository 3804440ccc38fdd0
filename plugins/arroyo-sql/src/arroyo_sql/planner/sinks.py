"""Rows into sinks: the columns that a table declares, of the types that it declares."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import pyarrow as pa

from arroyo_core.errors import Location, PipelineError
from arroyo_sql.connectors import sink_of
from arroyo_sql.planned import Connection
from arroyo_sql.planner.graph import AbandonedError, Graph
from arroyo_sql.planner.placing import placed
from arroyo_sql.planner.relations import UPDATING_META, Field, Relation, quote
from arroyo_sql.planner.sql_types import WINDOW, cast_sql, same, sql_name
from arroyo_sql.planner.tables import Catalogue
from arroyo_sql.script import Insert, Table


@dataclass(frozen=True, slots=True)
class Part:
    """The rows of one INSERT; `schema` has the names that the query gives them."""

    relation: Relation
    schema: pa.Schema
    insert: Insert


@dataclass(slots=True)
class Sinks:
    graph: Graph
    catalogue: Catalogue
    parts: dict[str, list[Part]] = field(default_factory=dict)

    def add(self, target: str, part: Part) -> None:
        self.parts.setdefault(target, []).append(part)

    def targets(self) -> Iterable[str]:
        return list(self.parts)

    def write(self, target: str) -> str:
        """The node of a sink, which gets the rows of all that is inserted into it."""
        parts = self.parts[target]
        table = self.catalogue.tables.get(target)
        at = parts[0].insert.at
        node = self._united(target, table, parts)
        if table is None:
            return self.graph.connect(target, Connection("std.stdout", {}, at), [node])
        connection = sink_of(table, plugins=self.catalogue.plugins, mistakes=self.graph.mistakes, used_at=at)
        if connection is None:
            raise AbandonedError
        return self.graph.connect(target, connection, [node])

    def in_memory(self, table: Table, parts: list[Part]) -> Relation:
        """The rows of a table in memory: under its names, of its types."""
        if len(parts) > 1:
            node = self._united(table.name, table, parts)
            stream = self.graph.schema(node)
            fields = [
                Field.of_column(each.name, each.type, name=each.name)
                for each in stream.schema
                if each.name != UPDATING_META
            ]
            return Relation(node, tuple(fields), stream.timestamp_column, UPDATING_META in stream.schema.names)
        (part,) = parts
        columns = self._columns(table.name, table, part)
        fields = [Field(None, name, sql, kind) for name, (sql, kind) in columns.items()]
        copied = {quote(each.column): each for each in part.relation.fields if each.column is not None}
        fields = [replace(each, column=copied[each.sql].column) if each.sql in copied else each for each in fields]
        return replace(part.relation, fields=tuple(fields))

    def typed(self, relation: Relation) -> Relation:
        """The relation with the types that its node gives."""
        schema = self.graph.schema(relation.node).schema
        fields = [
            replace(each, type=schema.field(each.column).type) if each.column is not None else each
            for each in relation.fields
        ]
        return replace(relation, fields=tuple(fields))

    def _united(self, target: str, table: Table | None, parts: list[Part]) -> str:
        """The node with the rows of all parts, with the columns of the table."""
        nodes = [self._shaped(target, table, part) for part in parts]
        if len(nodes) == 1:
            return nodes[0]
        at = parts[0].insert.at
        return self.graph.add(f"{target}_all", "std.union", self._alike(target, nodes, parts), {}, at=at)

    def _shaped(self, target: str, table: Table | None, part: Part) -> str:
        columns = self._columns(target, table, part)
        node = part.relation.node
        present = [name for name in self.graph.columns(node) if name != UPDATING_META]
        wanted = {name: sql for name, (sql, _) in columns.items()}
        if list(wanted) == present and all(sql == quote(name) for name, sql in wanted.items()):
            return node
        copied = [name for name, sql in wanted.items() if sql == quote(name) and name in present]
        computed = {name: sql for name, sql in wanted.items() if name not in copied}
        config: dict[str, object] = {"expressions": wanted}
        if copied and [*copied, *computed] == list(wanted):
            config = {"keep": copied, **({"expressions": computed} if computed else {})}
        text = part.insert.query
        with placed(self.graph, text, text.at):
            return self.graph.add(f"{target}_rows", "std.project", [node], config, at=text.at)

    def _columns(self, target: str, table: Table | None, part: Part) -> dict[str, tuple[str, pa.DataType | None]]:
        """SQL of the columns of a sink in their order, with their types where the table declares them."""
        fields, names = part.relation.fields, list(part.schema.names)
        at = part.insert.query.at
        declared = [column for column in table.columns if column.generated is None] if table is not None else []
        if not declared:
            chosen = list(part.insert.columns) or names
            if len(chosen) != len(fields):
                raise PipelineError(f"{len(chosen)} columns are named, and the query has {len(fields)}", at=at)
            _check_unique(chosen, at)
            return {name: (each.sql, None) for name, each in zip(chosen, fields, strict=True)}
        assert table is not None
        chosen = list(part.insert.columns) or [column.name for column in declared]
        if len(chosen) != len(fields):
            raise PipelineError(
                f"{target!r} has {len(chosen)} columns, and the query has {len(fields)}", at=at, value=target
            )
        known = {column.name: column for column in declared}
        for name in chosen:
            if name not in known:
                raise PipelineError(
                    f"{target!r} has no column {name!r}", at=part.insert.at, value=name, allowed=list(known)
                )
        given = dict(zip(chosen, fields, strict=True))
        real = self._types(part, given)
        found: dict[str, tuple[str, pa.DataType | None]] = {}
        for column in declared:
            if column.name not in given:
                if column.not_null:
                    raise PipelineError(
                        f"{column.name!r} is NOT NULL, and nothing is inserted into it", at=part.insert.at
                    )
                found[column.name] = (_cast("NULL", column.type, at), column.type)
                continue
            sql, kind = given[column.name].sql, real[column.name]
            is_same = kind is not None and same(kind, column.type)
            found[column.name] = (sql if is_same else _cast(sql, column.type, at), column.type)
        return found

    def _types(self, part: Part, given: dict[str, Field]) -> dict[str, pa.DataType | None]:
        """The types that expressions really have, as the operator computes them."""
        schema = self.graph.schema(part.relation.node).schema
        found: dict[str, pa.DataType | None] = {}
        computed = {}
        for name, each in given.items():
            if each.column is not None:
                found[name] = schema.field(each.column).type
            elif each.window is not None:
                found[name] = WINDOW
            else:
                computed[name] = each.sql
        if computed:
            text, config = part.insert.query, {"expressions": computed}
            with placed(self.graph, text, text.at):
                trial = self.graph.type_of("std.project", [part.relation.node], config, at=text.at)
            found.update({name: trial.schema.field(name).type for name in computed})
        return found

    def _alike(self, target: str, nodes: list[str], parts: list[Part]) -> list[str]:
        """The inputs of a union without event time, unless all have the same."""
        times = {self.graph.schema(node).timestamp_column for node in nodes}
        names = {tuple(self.graph.columns(node)) for node in nodes}
        if len(names) > 1:
            others = parts[1:]
            raise PipelineError(
                f"what is inserted into {target!r} has other columns, or changes where the first does not",
                at=others[0].insert.at,
            )
        if len(times) == 1:
            return nodes
        # A column that is computed is no event time.
        bare = []
        for node in nodes:
            time = self.graph.schema(node).timestamp_column
            if time is None:
                bare.append(node)
                continue
            kind = self.graph.schema(node).schema.field(time).type
            columns = {name: quote(name) for name in self.graph.columns(node) if name != UPDATING_META}
            columns[time] = f"coalesce({quote(time)}, {_cast('NULL', kind, parts[0].insert.at)})"
            bare.append(
                self.graph.add(f"{target}_rows", "std.project", [node], {"expressions": columns}, at=parts[0].insert.at)
            )
        return bare


def _check_unique(names: list[str], at: Location) -> None:
    for name in names:
        if names.count(name) > 1:
            raise PipelineError(f"two columns are called {name!r}: give one another name with AS", at=at, value=name)


def _cast(sql: str, kind: pa.DataType, at: Location) -> str:
    printed = cast_sql(sql, kind)
    if printed is None:
        raise PipelineError(f"a column of type {sql_name(kind)} must have that type in the query, too", at=at)
    return printed
