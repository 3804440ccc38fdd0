"""Names of tables as people write them, and as SQL has them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from arroyo_connectors import check_table_or_query, query_relation

from arroyo_core.errors import ConfigError

#: As it stands, or in backticks.
_PART = r"(?:`(?:[^`]|``)+`|[\w$]+)"
_NAME = re.compile(rf"(?:({_PART})\.)?({_PART})")


@dataclass(frozen=True, slots=True)
class TableName:
    """A table and its database."""

    schema: str
    name: str

    @property
    def quoted(self) -> str:
        return quoted(self.schema, self.name)

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


def read_name(written: str, database: str, field: str) -> TableName:
    """The table that is meant, in `database` unless another one is named; raises `ConfigError`."""
    found = _NAME.fullmatch(written)
    if found is None:
        raise ConfigError(
            "this is not the name of a table: orders, sales.orders, or with backticks as in SQL",
            field=field,
            value=written,
        )
    schema, name = found.groups()
    return TableName(_unquoted(schema) if schema else database, _unquoted(name))


def read_relation(table: str, query: str, database: str) -> tuple[str, str]:
    """What people call it, and what stands after FROM; raises `ConfigError` where not exactly one of both is given."""
    check_table_or_query(table, query)
    if table:
        found = read_name(table, database, "table")
        return f"table {found}", found.quoted
    return "a query", query_relation(query)


def quoted(*names: str) -> str:
    """Names as SQL has them."""
    return ".".join("`" + name.replace("`", "``") + "`" for name in names)


def text_literal(text: str) -> str:
    """A text as SQL has it."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _unquoted(written: str) -> str:
    return written[1:-1].replace("``", "`") if written.startswith("`") else written
