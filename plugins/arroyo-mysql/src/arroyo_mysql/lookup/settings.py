"""The config of a lookup, checked."""

from __future__ import annotations

from dataclasses import dataclass

from arroyo_connectors import check_distinct

from arroyo_mysql.connection import Server, read_connection
from arroyo_mysql.lookup_pb2 import LookupConfig
from arroyo_mysql.names import read_relation


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupSettings:
    """A checked config. `relation` is what stands after FROM."""

    server: Server
    name: str
    relation: str
    columns: tuple[str, ...]


def check_lookup(config: LookupConfig) -> LookupSettings:
    """The settings of a config; raises `ConfigError`. Reaches no server."""
    server = read_connection(config.connection)
    name, relation = read_relation(config.table, config.query, server.database)
    check_distinct(config.columns)
    return LookupSettings(
        server=server, name=f"{name} of {server.display()}", relation=relation, columns=tuple(config.columns)
    )
