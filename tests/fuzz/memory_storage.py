"""Files of state in memory, so that an input costs no disk."""

from __future__ import annotations

from collections.abc import Mapping

from arroyo_core.state import StorageProvider
from tests.unit.state.support.recording import DictDriver

URL = "memory://fuzz"


def memory_storage(files: Mapping[str, bytes]) -> StorageProvider:
    return StorageProvider(URL, driver=DictDriver(dict(files)), attempts=1)
