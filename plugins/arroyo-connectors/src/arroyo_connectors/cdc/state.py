"""What every source of changes remembers between epochs. Databases add where they are in their log."""

from __future__ import annotations

import msgspec


class CdcPosition(msgspec.Struct, frozen=True, kw_only=True):
    """Where the source is."""

    is_snapshot_complete: bool = False
    #: The rows that the snapshot has read.
    snapshot_rows: int = 0
    #: The latest event time that was read.
    latest_us: int | None = None
    is_idle: bool = False
    #: For how long no change had come. A length and not a moment: the time a job was down is nobody's idleness.
    quiet_us: int = 0


class CdcChunk(msgspec.Struct, frozen=True, kw_only=True):
    """Rows that were read in one query: those behind the chunk before, up to `last`."""

    #: The key of its last row, as the database writes it; None for the last chunk, which has all that is behind.
    last: tuple[str, ...] | None
