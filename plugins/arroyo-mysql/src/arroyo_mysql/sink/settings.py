"""The config of a sink, checked."""

from __future__ import annotations

from dataclasses import dataclass

from arroyo_connectors import Mode, read_mode

from arroyo_core.errors import ConfigError
from arroyo_mysql.connection import Server, read_connection
from arroyo_mysql.names import TableName, read_name
from arroyo_mysql.sink_pb2 import SinkConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSettings:
    """A checked config."""

    server: Server
    table: TableName
    mode: Mode
    keys: tuple[str, ...]
    deleted_column: str
    creates_table: bool
    token_table: TableName


def check_sink(config: SinkConfig) -> SinkSettings:
    """The settings of a config; raises `ConfigError`. Reaches no server."""
    # The planner checks this for YAML; configs that are made in code come here unchecked.
    if not config.table:
        raise ConfigError("table is needed", field="table")
    if not config.token_table:
        raise ConfigError("token_table is needed", field="token_table")
    server = read_connection(config.connection)
    table = read_name(config.table, server.database, "table")
    tokens = read_name(config.token_table, server.database, "token_table")
    if tokens == table:
        raise ConfigError("tokens need a table of their own", field="token_table", value=config.token_table)
    return SinkSettings(
        server=server,
        table=table,
        mode=read_mode(config.mode),
        keys=tuple(config.keys),
        deleted_column=config.deleted_column,
        creates_table=config.create_table,
        token_table=tokens,
    )
