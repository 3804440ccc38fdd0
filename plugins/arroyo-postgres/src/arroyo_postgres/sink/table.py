"""The table that rows are written to: what the catalogue says of it, whether rows fit, and how it is made."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from arroyo_core.errors import ConfigError
from arroyo_postgres.sink.types import holds, sql_type

if TYPE_CHECKING:
    import psycopg

_RELATION = """
select c.oid::int8, n.nspname, c.relname, c.relkind::text
from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = to_regclass(%s)
"""
#: Of a domain the type below it, of an array that of its values.
_COLUMNS = """
select a.attname, b.typname, coalesce(e.typname, ''), format_type(a.atttypid, a.atttypmod),
  a.attnotnull and not a.atthasdef and a.attidentity = '', a.attgenerated <> '' or a.attidentity = 'a'
from pg_attribute a join pg_type t on t.oid = a.atttypid
join pg_type b on b.oid = coalesce(nullif(t.typbasetype, 0), t.oid)
left join pg_type e on e.oid = b.typelem and b.typcategory = 'A'
where a.attrelid = %s and a.attnum > 0 and not a.attisdropped order by a.attnum
"""
#: An index that a row can be found by: of columns only, of all rows, and checked at once.
_UNIQUE = """
select array_agg(a.attname::text) from pg_index i
cross join lateral unnest(i.indkey::int2[]) with ordinality as k(number, place)
join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.number
where i.indrelid = %s and i.indisunique and i.indimmediate and i.indisvalid and i.indpred is null and i.indexprs is null
  and k.place <= i.indnkeyatts
group by i.indexrelid
"""
#: Tables, and those with partitions; foreign tables only take rows that are added.
_KINDS = {"append": ("r", "p", "f"), "upsert": ("r", "p")}


@dataclass(frozen=True, slots=True)
class SinkColumn:
    """A column of the table."""

    name: str
    type_name: str
    #: Of an array the type of its values.
    element: str
    #: What is written for the type in SQL.
    sql: str
    is_needed: bool
    is_computed: bool


@dataclass(frozen=True, slots=True)
class SinkTable:
    """A table as it is now."""

    schema: str
    name: str
    kind: str
    columns: tuple[SinkColumn, ...]
    unique: tuple[frozenset[str], ...]

    @property
    def quoted(self) -> str:
        return quoted(self.schema, self.name)

    def check(self, rows: pa.Schema, *, mode: str, keys: Sequence[str]) -> None:
        """Raise `ConfigError` where rows of these columns cannot be written."""
        if self.kind not in _KINDS[mode]:
            raise ConfigError(f"{self.quoted} is not a table that takes rows in mode {mode}", field="table")
        known = {column.name: column for column in self.columns}
        for field in rows:
            self._check_column(field, known)
        for column in self.columns:
            if column.is_needed and column.name not in rows.names:
                raise ConfigError(
                    f"column {column.name!r} of table {self.quoted} must have a value, and the stream has no "
                    "such column",
                    field="table",
                )
        if mode == "upsert" and frozenset(keys) not in self.unique:
            columns = ", ".join(quoted(key) for key in keys)
            raise ConfigError(
                f"table {self.quoted} has no primary key and no unique index of exactly the columns {', '.join(keys)}, "
                f"by which a row finds the one that it replaces: CREATE UNIQUE INDEX ON {self.quoted} ({columns})",
                field="keys",
            )

    def _check_column(self, field: pa.Field, known: dict[str, SinkColumn]) -> None:
        column = known.get(field.name)
        if column is None:
            near = difflib.get_close_matches(field.name, known, n=1)
            raise ConfigError(
                f"table {self.quoted} has no column {field.name!r}: add it, or leave it out with std.project",
                field="table",
                allowed=list(known),
                suggestion=near[0] if near else None,
            )
        if column.is_computed:
            raise ConfigError(
                f"column {field.name!r} of table {self.quoted} is made by PostgreSQL: leave it out with std.project",
                field="table",
            )
        if not holds(column.type_name, column.element, field.type):
            raise ConfigError(
                f"column {field.name!r} is {field.type}, and {column.sql} in table {self.quoted}, which does not hold "
                f"all its values: cast it with std.project, or make the column {sql_type(field.type)}",
                field="table",
            )


def find_table(connection: psycopg.Connection[Any], name: str) -> SinkTable | None:
    """The table; None where there is none, or the user may not see it."""
    row = connection.execute(_RELATION, [name]).fetchone()
    if row is None:
        return None
    oid, schema, relation, kind = row
    columns = tuple(SinkColumn(*each) for each in connection.execute(_COLUMNS, [oid]).fetchall())
    unique = tuple(frozenset(names) for (names,) in connection.execute(_UNIQUE, [oid]).fetchall())
    return SinkTable(schema, relation, kind, columns, unique)


def missing_table(name: str) -> ConfigError:
    return ConfigError(
        f"there is no table {name!r}, or the user may not see it; create_table: true makes it",
        field="table",
        value=name,
    )


def create_table(connection: psycopg.Connection[Any], name: str, rows: pa.Schema, keys: Sequence[str]) -> None:
    """Make a table for these rows, unless somebody else just did."""
    columns = [f"{quoted(field.name)} {sql_type(field.type)}" for field in rows]
    if keys:
        columns.append(f"primary key ({', '.join(quoted(key) for key in keys)})")
    _create(connection, name, ", ".join(columns))


def create_token_table(connection: psycopg.Connection[Any], name: str) -> str:
    """Make the table of tokens, unless it is there; returns its name as SQL has it."""
    found = _parse(connection, name)
    if connection.execute("select to_regclass(%s) is null", [found]).fetchone() == (True,):
        _create(
            connection,
            name,
            "incarnation text, node text, generation bigint not null, epoch bigint not null, "
            "primary key (incarnation, node)",
        )
    return found


def _create(connection: psycopg.Connection[Any], name: str, columns: str) -> None:
    from psycopg import errors

    try:
        connection.execute(statement(f"create table if not exists {_parse(connection, name)} ({columns})"))
    except (errors.UniqueViolation, errors.DuplicateTable, errors.DuplicateObject):
        # Two may both find that there is none, and then one fails: at the table, its type, or an index of these.
        return


def _parse(connection: psycopg.Connection[Any], name: str) -> str:
    """A name that a person wrote, as PostgreSQL reads it, quoted."""
    row = connection.execute("select parse_ident(%s)", [name]).fetchone()
    assert row is not None
    return quoted(*row[0])


def quoted(*names: str) -> str:
    """Names as SQL has them."""
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)


def statement(text: str) -> bytes:
    """SQL that was put together here, of quoted names: as a text psycopg takes only what stands in the code."""
    return text.encode()
