"""The config of a sink, checked."""

from __future__ import annotations

import re
from dataclasses import dataclass

from arroyo_connectors import Mode, read_mode

from arroyo_core.errors import ConfigError
from arroyo_postgres.connection import Server, read_connection
from arroyo_postgres.sink_pb2 import SinkConfig

#: A name as SQL has it, perhaps of a schema.
_PART = r'(?:"(?:[^"]|"")+"|[^\W\d][\w$]*)'
_NAME = re.compile(rf"{_PART}(?:\.{_PART})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSettings:
    """A checked config. Names are as they were written, which PostgreSQL reads."""

    server: Server
    table: str
    mode: Mode
    keys: tuple[str, ...]
    deleted_column: str
    creates_table: bool
    token_table: str


def check_sink(config: SinkConfig) -> SinkSettings:
    """The settings of a config; raises `ConfigError`. Reaches no server."""
    # The planner checks this for YAML; configs that are made in code come here unchecked.
    if not config.table:
        raise ConfigError("table is needed", field="table")
    if not config.token_table:
        raise ConfigError("token_table is needed", field="token_table")
    for field in ("table", "token_table"):
        check_name(getattr(config, field), field)
    if config.token_table == config.table:
        raise ConfigError("tokens need a table of their own", field="token_table", value=config.token_table)
    return SinkSettings(
        server=read_connection(config.connection),
        table=config.table,
        mode=read_mode(config.mode),
        keys=tuple(config.keys),
        deleted_column=config.deleted_column,
        creates_table=config.create_table,
        token_table=config.token_table,
    )


def check_name(written: str, field: str) -> None:
    """Raise `ConfigError` where this is not the name of a table."""
    if not _NAME.fullmatch(written):
        raise ConfigError(
            "this is not the name of a table: orders, sales.orders, or with quotes as in SQL",
            field=field,
            value=written,
        )
