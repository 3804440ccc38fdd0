"""Rows of a table or a query, by COPY, in the types that `postgres.cdc` gives them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv
from arroyo_connectors import check_column, check_table_or_query, query_relation

from arroyo_core.errors import ConfigError
from arroyo_postgres.cdc.columns import TableColumn, arrow_type, make_array
from arroyo_postgres.sink.settings import check_name
from arroyo_postgres.sink.table import statement

if TYPE_CHECKING:
    import psycopg


@dataclass(frozen=True, slots=True)
class FoundColumn:
    """A column as PostgreSQL describes it; `sql` is its type without a precision."""

    column: TableColumn
    sql: str


def read_relation(table: str, query: str) -> str:
    """What stands after FROM; raises `ConfigError` for a config that has not exactly one of both."""
    check_table_or_query(table, query)
    if table:
        check_name(table, "table")
        return table
    return query_relation(query)


def describe(connection: psycopg.Connection[Any], relation: str, columns: Sequence[str]) -> tuple[FoundColumn, ...]:
    """The columns that are wanted, all where none are named; raises `ConfigError`."""
    cursor = connection.execute(statement(f"select * from {relation} limit 0"))
    result = cursor.pgresult
    assert result is not None
    names = [(result.fname(place) or b"").decode() for place in range(result.nfields)]
    for place, name in enumerate(columns):
        check_column(name, names, f"columns[{place}]")
    found = {}
    for place, name in enumerate(names):
        if name in found:
            raise ConfigError(f"there are two columns {name!r}: give one of them another name", field="query")
        oid, modifier = result.ftype(place), result.fmod(place)
        sql = connection.execute("select format_type(%s::oid, null)", [oid]).fetchone()
        assert sql is not None
        found[name] = FoundColumn(TableColumn(name, oid, modifier, arrow_type(oid, modifier)), sql[0])
    return tuple(found[name] for name in columns or names)


def copy_out(connection: psycopg.Connection[Any], question: str) -> bytes:
    """The rows of a SELECT as CSV."""
    with (
        connection.cursor() as cursor,
        cursor.copy(statement(f"copy ({question}) to stdout (format csv)")) as copy,
    ):
        return b"".join(bytes(part) for part in copy)


def read_csv(data: bytes, columns: Sequence[TableColumn]) -> pa.Table:
    """NULL is an empty value, and an empty text a quoted one."""
    schema = pa.schema([column.field for column in columns])
    if not data:
        return schema.empty_table()
    names = [str(place) for place in range(len(columns))]
    texts = pyarrow.csv.read_csv(
        pa.BufferReader(data),
        read_options=pyarrow.csv.ReadOptions(column_names=names, use_threads=False),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    ).combine_chunks()
    arrays = [
        make_array(text.chunk(0) if text.num_chunks else pa.array([], pa.string()), column)
        for text, column in zip(texts.columns, columns, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)
