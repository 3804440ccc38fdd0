"""Reads the rows that a table has, in chunks of its primary key, each in one query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv
from arroyo_connectors.cdc import Emit, ReadChunk

from arroyo_postgres.cdc.catalogue import quoted, table_name
from arroyo_postgres.cdc.columns import make_array
from arroyo_postgres.cdc.settings import CdcSettings
from arroyo_postgres.cdc.state import PostgresChunk
from arroyo_postgres.cdc_pb2 import CatalogueColumn

if TYPE_CHECKING:
    import psycopg

#: Sessions that read chunks: rows that a policy would leave out are an error instead.
SETTINGS = {"row_security": "off"}
#: Bytes of texts that become rows at once, where a chunk is the whole table.
_BLOCK_BYTES = 16 << 20


class SnapshotReader:
    """Reads chunks on a connection."""

    def __init__(self, settings: CdcSettings, connection: psycopg.Connection[Any]) -> None:
        self._settings = settings
        self._connection = connection
        names = [column.name for column in settings.columns]
        self._extra = [column for column in settings.table.key if column.name not in names]
        self._names = [*names, *(column.name for column in self._extra)]

    def read(self, after: PostgresChunk | None, limit: int, emit: Emit) -> ReadChunk[PostgresChunk]:
        """The rows behind a chunk, at most so many; all that are left where the table has no key.

        `emit` is given them, a batch at a time. Raises errors of the driver, and `DataError`.
        """
        has_key = bool(self._settings.table.key)
        query = f"select {quoted_list(self._names)} from {self._from()}{self._where(after)}"
        if has_key:
            query += f" order by {quoted_list([column.name for column in self._settings.table.key])} limit {limit}"
        rows, last = 0, None
        with self._connection.transaction():
            self._connection.execute("set transaction isolation level repeatable read, read only")
            seen = self._connection.execute("select pg_current_snapshot()::text").fetchone()
            assert seen is not None
            with self._connection.cursor().copy(f"copy ({query}) to stdout (format csv)".encode()) as copy:
                for table in self._tables(copy):
                    rows += table.num_rows
                    last = self._last_key(table)
                    emit(self._batch(table))
        if not has_key or rows < limit:
            last = None
        return ReadChunk(PostgresChunk(last=last, seen=seen[0]), rows)

    def _from(self) -> str:
        # Tables that inherit have changes of their own.
        return f"{'' if self._settings.table.is_partitioned else 'only '}{table_name(self._settings.table)}"

    def _where(self, after: PostgresChunk | None) -> str:
        if after is None or after.last is None:
            return ""
        key = self._settings.table.key
        left = ", ".join(quoted(column.name) for column in key)
        right = ", ".join(typed_literal(value, column) for value, column in zip(after.last, key, strict=True))
        return f" where ({left}) > ({right})"

    def _tables(self, copy: psycopg.Copy) -> Any:
        """The texts of rows as tables of strings. A message of the server has whole rows."""
        parts: list[bytes] = []
        size = 0
        for data in copy:
            parts.append(bytes(data))
            size += len(data)
            if size >= _BLOCK_BYTES:
                yield self._parse(b"".join(parts))
                parts, size = [], 0
        if parts:
            yield self._parse(b"".join(parts))

    def _parse(self, data: bytes) -> pa.Table:
        """CSV tells null from a text that is empty by quotes."""
        return pyarrow.csv.read_csv(
            pa.BufferReader(data),
            read_options=pyarrow.csv.ReadOptions(
                column_names=[str(number) for number in range(len(self._names))],
                block_size=len(data) + 1,
                use_threads=False,
            ),
            parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types={str(number): pa.string() for number in range(len(self._names))},
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )

    def _last_key(self, table: pa.Table) -> tuple[str, ...]:
        row = table.num_rows - 1
        places = [self._names.index(column.name) for column in self._settings.table.key]
        return tuple(table.column(place)[row].as_py() for place in places)

    def _batch(self, table: pa.Table) -> pa.RecordBatch:
        columns = self._settings.columns
        arrays = [
            make_array(pa.concat_arrays(table.column(place).chunks), column) for place, column in enumerate(columns)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._settings.follow.schema)


def find_behind(
    connection: psycopg.Connection[Any],
    key: Sequence[CatalogueColumn],
    keys: Sequence[Sequence[str | None]],
    bounds: Sequence[Sequence[str]],
) -> list[bool]:
    """Which keys are behind their bounds, in the order that the database has for them.

    Only it knows that order: it depends on types, and for texts on collations.
    """
    width = len(key)
    sides = []
    for offset in (0, width):
        parts = [f"c{offset + place}::{each.type_name}{_collate(each)}" for place, each in enumerate(key)]
        # Beside parameters a percent sign is written twice.
        sides.append(f"({', '.join(parts)})".replace("%", "%%"))
    arrays = ", ".join("%s::text[]" for _ in range(2 * width))
    names = ", ".join(f"c{place}" for place in range(2 * width))
    query = f"select {sides[0]} > {sides[1]} from unnest({arrays}) with ordinality as k({names}, place) order by place"
    given = [[row[place] for row in side] for side in (keys, bounds) for place in range(width)]
    return [bool(row[0]) for row in connection.execute(query.encode(), given).fetchall()]


def quoted_list(names: Sequence[str]) -> str:
    return ", ".join(quoted(name) for name in names)


def typed_literal(value: str, column: CatalogueColumn) -> str:
    escaped = value.replace("'", "''").replace("\\", "\\\\")
    prefix = "E" if "\\" in value else ""
    return f"{prefix}'{escaped}'::{column.type_name}"


def _collate(column: CatalogueColumn) -> str:
    return f" collate {column.collation}" if column.collation else ""
