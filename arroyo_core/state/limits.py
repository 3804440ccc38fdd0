"""How large files of state may be: larger ones are neither written nor read, whoever has put them there."""

from __future__ import annotations

from arroyo_core.api.limits import Limit
from arroyo_core.state.storage import StorageProvider

#: Below the 2 GiB of a protobuf message. What somebody else wrote may take fifty times as much when it is parsed.
METADATA_BYTES = Limit(
    "ARROYO_MAX_METADATA_BYTES",
    2**27,
    "in the metadata of a checkpoint",
    is_bytes=True,
    least=1,
    greatest=2**31 - 1,
)
#: As its footer says: far above what is written, but for rows of gigabytes.
STATE_FILE_BYTES = Limit(
    "ARROYO_MAX_STATE_FILE_BYTES", 2**33, "in a data file of state, unpacked", is_bytes=True, least=1
)
#: In the order of docs/limits.md, which is held against it.
LIMITS = (METADATA_BYTES, STATE_FILE_BYTES)

#: What surrounds a message in its file, at most.
_ENVELOPE_BYTES = 1024

#: Of claims, markers, requests to stop and heartbeats, which have some hundred bytes.
SMALL_FILE_BYTES = 2**20
#: Of the status of a driver and of event logs, which name every node.
TOLD_FILE_BYTES = 2**26


def read_metadata(storage: StorageProvider, path: str) -> bytes:
    """The file of a checkpoint's metadata; `OversizedFileError` for one that is larger than any may be."""
    return storage.read(path, max_bytes=METADATA_BYTES.value + _ENVELOPE_BYTES, option=METADATA_BYTES.variable)
