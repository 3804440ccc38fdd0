"""`template.lookup`: the rows of some keys. Whoever joins keeps the answers: there is no cache here."""

from __future__ import annotations

from collections.abc import Hashable

import pyarrow as pa
from arroyo_connectors import PartedLookup

from arroyo_core.errors import ConfigError, DataError
from arroyo_template_database.database import TYPES, listed, quoted, reading


class DatabaseLookup(PartedLookup):
    """Asks for the keys of a batch, in one query for each part of them."""

    #: The database has a limit of parameters in a query.
    keys_at_once = 300

    def __init__(self, path: str, table: str) -> None:
        self._path = path
        self._table = table

    def name(self) -> str:
        return f"table {self._table!r} of {self._path}"

    def cache_key(self) -> Hashable:
        return ("template.lookup", self._path, self._table)

    def schema(self) -> pa.Schema:
        with reading(self._path) as database:
            found = database.execute(f"pragma table_info({quoted(self._table)})").fetchall()
        if not found:
            raise ConfigError(f"there is no {self.name()}", field="table", value=self._table)
        fields = []
        for _, name, kind, *_ in found:
            if kind.lower() not in TYPES:
                raise ConfigError(f"column {name!r} is {kind}, not one of {', '.join(TYPES)}", field="table")
            fields.append(pa.field(name, TYPES[kind.lower()]))
        return pa.schema(fields)

    def ask(self, keys: pa.Table, schema: pa.Schema) -> pa.Table:
        names = keys.schema.names
        row = f"({', '.join('?' for _ in names)})"
        values = [value for key in keys.to_pylist() for value in key.values()]
        query = (
            f"select {listed(schema.names)} from {quoted(self._table)} "
            f"where ({listed(names)}) in (values {', '.join(row for _ in range(keys.num_rows))})"
        )
        with reading(self._path) as database:
            rows = database.execute(query, values).fetchall()
        if not rows:
            return schema.empty_table()
        columns = zip(schema, zip(*rows, strict=True), strict=True)
        try:
            return pa.table([pa.array(values).cast(field.type) for field, values in columns], schema=schema)
        except pa.ArrowInvalid as error:
            raise DataError(f"{self.name()} has a value of another type than its column: {error}") from error
