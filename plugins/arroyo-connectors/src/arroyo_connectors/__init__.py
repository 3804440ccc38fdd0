"""What connectors share: a sink that commits rows and its token in one transaction, lookups by key, and sources."""

from arroyo_connectors.changes import DELETED, Mode, read_mode
from arroyo_connectors.chunks import SnapshotState, find_new, reader_of, snapshot_tables
from arroyo_connectors.event_time import EventTime
from arroyo_connectors.growing import GrowingSettings, GrowingSource
from arroyo_connectors.lookup import PartedLookup
from arroyo_connectors.open_streams import OpenStreams
from arroyo_connectors.sink import TransactionalSink
from arroyo_connectors.target import Committed, Target, TokenKey, Writer
from arroyo_connectors.token_table import SqlWriter, TokenTable

__all__ = [
    "DELETED",
    "Committed",
    "EventTime",
    "GrowingSettings",
    "GrowingSource",
    "Mode",
    "OpenStreams",
    "PartedLookup",
    "SnapshotState",
    "SqlWriter",
    "Target",
    "TokenKey",
    "TokenTable",
    "TransactionalSink",
    "Writer",
    "find_new",
    "read_mode",
    "reader_of",
    "snapshot_tables",
]
