"""The table that rows are written to: what the catalogue says of it, and whether rows fit."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from arroyo_core.errors import ConfigError
from arroyo_mysql.connection import Session
from arroyo_mysql.names import TableName, quoted, text_literal
from arroyo_mysql.sink.columns import SinkColumn
from arroyo_mysql.sink.create import sql_type

#: A table that is kept with its history is one, too.
_KINDS = ("BASE TABLE", "SYSTEM VERSIONED")
_TABLE = """
select t.table_name, t.table_type, t.engine, coalesce(e.transactions, 'NO'), @@lower_case_table_names
from information_schema.tables t left join information_schema.engines e on e.engine = t.engine
where t.table_schema = {schema} and t.table_name = {name}
"""
_COLUMNS = """
select column_name, data_type, column_type, numeric_precision, numeric_scale, coalesce(datetime_precision, 0),
  coalesce(collation_name, ''), is_nullable, column_default, extra, coalesce(generation_expression, '')
from information_schema.columns where table_schema = {schema} and table_name = {name} order by ordinal_position
"""
#: An index of a part of a column, or of an expression, has no name here: rows with other values may have its own.
_UNIQUE = """
select index_name, if(sub_part is null, column_name, null) from information_schema.statistics
where table_schema = {schema} and table_name = {name} and non_unique = 0 order by index_name, seq_in_index
"""


@dataclass(frozen=True, slots=True)
class UniqueIndex:
    """The columns by which rows are told apart; None for a part of one, or an expression."""

    name: str
    columns: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class SinkTable:
    """A table as it is now."""

    name: TableName
    kind: str
    engine: str
    is_transactional: bool
    columns: tuple[SinkColumn, ...]
    unique: tuple[UniqueIndex, ...]

    def check(self, rows: pa.Schema, *, mode: str, keys: Sequence[str]) -> None:
        """Raise `ConfigError` where rows of these columns cannot be written."""
        if self.kind not in _KINDS:
            raise ConfigError(f"{self.name} is not a table that takes rows, but a {self.kind.lower()}", field="table")
        self.check_engine("table")
        known = {column.name: column for column in self.columns}
        for field in rows:
            self._check_column(field, known, is_key=mode == "upsert" and field.name in keys)
        for column in self.columns:
            if column.is_needed and column.name not in rows.names:
                raise ConfigError(
                    f"column {column.name!r} of table {self.name} must have a value, and the stream has no such column",
                    field="table",
                )
        if mode == "upsert":
            self._check_keys(keys, known)
            self._check_other_indexes(rows, keys, known)

    def check_engine(self, field: str) -> None:
        """Raise `ConfigError` where a transaction on this table is none."""
        if not self.is_transactional:
            raise ConfigError(
                f"table {self.name} has the engine {self.engine}, which has no transactions: rows could be there "
                f"twice, or in part. ALTER TABLE {self.name.quoted} ENGINE = InnoDB",
                field=field,
            )

    def padded(self, names: Sequence[str]) -> tuple[str, ...]:
        """Which of these columns take texts for equal that differ in spaces at their ends."""
        return tuple(column.name for column in self.columns if column.name in names and column.is_padded)

    def _check_column(self, field: pa.Field, known: dict[str, SinkColumn], *, is_key: bool) -> None:
        column = known.get(field.name)
        if column is None:
            near = [name for name in known if name.casefold() == field.name.casefold()]
            near = near or difflib.get_close_matches(field.name, known, n=1)
            raise ConfigError(
                f"table {self.name} has no column {field.name!r}: add it, or leave it out with std.project",
                field="table",
                allowed=list(known),
                suggestion=near[0] if near else None,
            )
        if column.is_computed:
            raise ConfigError(
                f"column {field.name!r} of table {self.name} is made by the database: leave it out with std.project",
                field="table",
            )
        if not column.holds(field.type, is_key=is_key):
            raise ConfigError(
                f"column {field.name!r} is {field.type}, and {column.sql} in table {self.name}, which does not hold "
                f"all its values: cast it with std.project, or make the column {sql_type(field.type, field.name)}",
                field="table",
            )

    def _check_keys(self, keys: Sequence[str], known: dict[str, SinkColumn]) -> None:
        if not any(set(index.columns) == set(keys) for index in self.unique):
            columns = ", ".join(map(quoted, keys))
            raise ConfigError(
                f"table {self.name} has no primary key and no unique index of exactly the columns {', '.join(keys)}, "
                f"by which a row finds the one that it replaces: ALTER TABLE {self.name.quoted} ADD UNIQUE ({columns})",
                field="keys",
            )
        for key in keys:
            column = known[key]
            if not column.is_exact:
                raise ConfigError(
                    f"column {key!r} of table {self.name} has the collation {column.collation}, by which texts that "
                    f"differ are the same key: ALTER TABLE {self.name.quoted} MODIFY {quoted(key)} {column.sql} "
                    "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
                    field="keys",
                )

    def _check_other_indexes(self, rows: pa.Schema, keys: Sequence[str], known: dict[str, SinkColumn]) -> None:
        """ON DUPLICATE KEY UPDATE takes the row that it finds by any index."""
        for index in self.unique:
            names = set(index.columns)
            if names >= set(keys):
                continue
            if any(name and name not in rows.names and known[name].is_distinct for name in names):
                continue
            columns = ", ".join(name or "an expression" for name in index.columns)
            raise ConfigError(
                f"table {self.name} has another unique index, {index.name} ({columns}): a row would take the place of "
                "one with the same values there, which may be that of another key. Drop it, or make it one that is "
                "not unique",
                field="keys",
            )


def find_table(session: Session, name: TableName) -> SinkTable | None:
    """The table; None where there is none, or the user may not see it."""
    wanted = {"schema": text_literal(name.schema), "name": text_literal(name.name)}
    tables = session.execute(_TABLE.format(**wanted))
    found = [row for row in tables if row[0] == name.name or row[4]]
    if not found:
        return None
    relation, kind, engine, transactions, _ = found[0]
    columns = tuple(_read_column(*row) for row in session.execute(_COLUMNS.format(**wanted)))
    indexes: dict[str, list[str | None]] = {}
    for index, column in session.execute(_UNIQUE.format(**wanted)):
        indexes.setdefault(index, []).append(column)
    return SinkTable(
        TableName(name.schema, relation),
        kind,
        engine or "none",
        transactions == "YES",
        columns,
        tuple(UniqueIndex(index, tuple(names)) for index, names in indexes.items()),
    )


def missing_table(name: TableName) -> ConfigError:
    return ConfigError(
        f"there is no table {str(name)!r}, or the user may not see it; create_table: true makes it",
        field="table",
        value=str(name),
    )


def _read_column(
    name: str,
    type_name: str,
    sql: str | bytes,
    precision: int | None,
    scale: int | None,
    fraction: int,
    collation: str,
    is_nullable: str,
    default: Any,
    extra: str,
    expression: str | bytes,
) -> SinkColumn:
    is_computed = bool(expression) or "INVISIBLE ROW" in extra.upper()
    is_counted = "auto_increment" in extra.lower()
    # MariaDB writes a default that is NULL as a text, MySQL as none.
    has_default = default is not None and default != "NULL"
    return SinkColumn(
        name=name,
        type_name=type_name.lower(),
        sql=sql.decode() if isinstance(sql, bytes) else sql,
        precision=precision,
        scale=scale,
        fraction=int(fraction),
        collation=collation,
        is_padded=bool(collation) and "nopad" not in collation and "_0900_" not in collation and collation != "binary",
        is_needed=is_nullable == "NO" and not has_default and not is_counted and not is_computed,
        is_computed=is_computed,
        is_distinct=is_counted or (is_nullable == "YES" and not has_default and not is_computed),
    )
