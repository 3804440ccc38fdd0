"""How large files of state may be: larger ones are neither written nor read, whoever has put them there."""

from __future__ import annotations

import os

from arroyo_core.api.units import parse_bytes
from arroyo_core.errors import SetupError
from arroyo_core.state.storage import StorageProvider

#: What the metadata of one checkpoint may take: far below the 2 GiB of a protobuf message, and already slow.
MAX_METADATA_BYTES = 2**29
METADATA_VARIABLE = "ARROYO_MAX_METADATA_BYTES"

#: What a data file may unpack to, as its footer says: far above what is written, but for rows of gigabytes.
MAX_UNPACKED_BYTES = 2**33
UNPACKED_VARIABLE = "ARROYO_MAX_STATE_FILE_BYTES"

#: What surrounds a message in its file, at most.
_ENVELOPE_BYTES = 1024

#: Of claims, markers, requests to stop and heartbeats, which have some hundred bytes.
SMALL_FILE_BYTES = 2**20
#: Of the status of a driver and of event logs, which name every node.
TOLD_FILE_BYTES = 2**26


def max_metadata_bytes() -> int:
    """What the metadata of one checkpoint may take, as `ARROYO_MAX_METADATA_BYTES` says."""
    return _limit(METADATA_VARIABLE, MAX_METADATA_BYTES, greatest=2**31 - 1)


def max_unpacked_bytes() -> int:
    """What a data file may unpack to, as `ARROYO_MAX_STATE_FILE_BYTES` says."""
    return _limit(UNPACKED_VARIABLE, MAX_UNPACKED_BYTES)


def read_metadata(storage: StorageProvider, path: str) -> bytes:
    """The file of a checkpoint's metadata; `OversizedFileError` for one that is larger than any may be."""
    return storage.read(path, max_bytes=max_metadata_bytes() + _ENVELOPE_BYTES, option=METADATA_VARIABLE)


def _limit(variable: str, default: int, *, greatest: int = 2**63 - 1) -> int:
    text = os.environ.get(variable, "")
    if not text:
        return default
    try:
        limit = parse_bytes(text)
    except ValueError as error:
        raise SetupError(f"{variable}: {error}") from error
    if not 0 < limit <= greatest:
        raise SetupError(f"{variable} is a size from 1 to {greatest} bytes, not {text}")
    return limit
