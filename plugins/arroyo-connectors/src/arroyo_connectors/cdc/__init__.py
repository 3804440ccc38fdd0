"""What sources of the changes of a table share: a snapshot in chunks of the primary key, and then the log.

A connector writes a `ChangeLog`, a `ChangeReader` and what they remember, and gives them to a `CdcSource`.
"""

from arroyo_connectors.cdc.log import Block, ChangeLog, ChangeReader, Emit, InterruptedByControlError, ReadChunk, Sees
from arroyo_connectors.cdc.open_streams import open_streams
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
    "FollowSettings",
    "InterruptedByControlError",
    "ReadChunk",
    "Sees",
    "SnapshotMode",
    "check_written",
    "open_streams",
    "read_follow",
]
