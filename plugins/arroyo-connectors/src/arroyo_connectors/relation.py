"""What is read of a database: one table, or one query."""

from __future__ import annotations

from arroyo_core.errors import ConfigError


def check_table_or_query(table: str, query: str) -> None:
    """Raise `ConfigError` for a config that has not exactly one of both."""
    if bool(table) == bool(query):
        raise ConfigError("one of table and query is needed, and only one", field="query" if table else "table")


def query_relation(query: str) -> str:
    """A query as it stands after FROM."""
    # A comment at the end of the query must not take the rest of ours.
    return f"({query.strip().removesuffix(';')}\n) as asked"
