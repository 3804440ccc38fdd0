"""What sources of the changes of a table share: a snapshot in chunks of the primary key, and then the log.

A connector writes a `ChangeLog`, a `ChangeReader` and what they remember, and gives them to a `CdcSource`.
"""

from arroyo_connectors.cdc.chunks import SnapshotState, find_new, reader_of, snapshot_tables
from arroyo_connectors.cdc.event_time import EventTime
from arroyo_connectors.cdc.log import Block, ChangeLog, ChangeReader, Emit, InterruptedByControlError, ReadChunk, Sees
from arroyo_connectors.cdc.open_streams import OpenStreams, open_streams
from arroyo_connectors.cdc.settings import CdcFields, FollowSettings, SnapshotMode, check_written, read_follow
from arroyo_connectors.cdc.source import CdcSource
from arroyo_connectors.cdc.state import CdcChunk, CdcPosition

__all__ = [
    "Block",
    "CdcChunk",
    "CdcFields",
    "CdcPosition",
    "CdcSource",
    "ChangeLog",
    "ChangeReader",
    "Emit",
    "EventTime",
    "FollowSettings",
    "InterruptedByControlError",
    "OpenStreams",
    "ReadChunk",
    "Sees",
    "SnapshotMode",
    "SnapshotState",
    "check_written",
    "find_new",
    "open_streams",
    "read_follow",
    "reader_of",
    "snapshot_tables",
]
