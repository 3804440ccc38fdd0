"""What connectors share: a sink that commits rows and its token in one transaction, lookups by key, and sources."""

from arroyo_connectors.changes import DELETED, Mode, read_mode
from arroyo_connectors.columns import check_column, check_distinct, check_event_time
from arroyo_connectors.growing import (
    GrowingFields,
    GrowingSettings,
    GrowingSource,
    check_growing_time,
    choose_columns,
    read_growing,
)
from arroyo_connectors.idle_connections import IdleConnections
from arroyo_connectors.lookup import PartedLookup
from arroyo_connectors.relation import check_table_or_query, query_relation
from arroyo_connectors.sink import TransactionalSink
from arroyo_connectors.target import Committed, Target, TokenKey, Writer
from arroyo_connectors.token_table import SqlWriter, TokenTable

__all__ = [
    "DELETED",
    "Committed",
    "GrowingFields",
    "GrowingSettings",
    "GrowingSource",
    "IdleConnections",
    "Mode",
    "PartedLookup",
    "SqlWriter",
    "Target",
    "TokenKey",
    "TokenTable",
    "TransactionalSink",
    "Writer",
    "check_column",
    "check_distinct",
    "check_event_time",
    "check_growing_time",
    "check_table_or_query",
    "choose_columns",
    "query_relation",
    "read_growing",
    "read_mode",
]
