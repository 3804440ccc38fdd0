"""Looks at entries of a table's log before the library does: deep JSON ends the process in its native code.

Statistics of a file are JSON inside of a text, which it reads, too.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from arroyo_core.api.json_depth import deepest_line, json_depth
from arroyo_core.api.limits import VALUE_DEPTH
from arroyo_core.errors import DataError
from arroyo_delta.limits import LOG_ENTRY_BYTES

if TYPE_CHECKING:
    from arroyo_delta.location import Files

LOG_FOLDER: Final = "_delta_log"
_ENTRY: Final = re.compile(r"(\d{20})\.json", re.ASCII)
_CHECKPOINT: Final = re.compile(r"(\d{20})\.checkpoint\..+", re.ASCII)
_ESCAPED: Final = re.compile(rb"\\u00[57][bB]")
_OPEN, _CLOSE = b"[{", b"]}"
#: Entries that were looked at, by table, name and size: nobody changes one that is there.
_known: set[tuple[str, str, int]] = set()
_MOST_KNOWN: Final = 100_000


class _File(msgspec.Struct, frozen=True):
    stats: str | None = None


class _Action(msgspec.Struct, frozen=True):
    add: _File | None = None
    remove: _File | None = None


_DECODER = msgspec.json.Decoder(_Action)


def check_log(files: Files, place: str, version: int | None = None) -> None:
    """Raise `DataError` for an entry that is too deep or too large, of those that the library reads for a version."""
    sizes = {path.rpartition("/")[2]: size for path, size in files.sizes(LOG_FOLDER).items()}
    last = version if version is not None else 10**20
    checkpoints = [int(found[1]) for name in sizes if (found := _CHECKPOINT.fullmatch(name)) and int(found[1]) <= last]
    first = max(checkpoints, default=-1) + 1
    if len(_known) > _MOST_KNOWN:
        _known.clear()
    for name, size in sorted(sizes.items()):
        found = _ENTRY.fullmatch(name)
        key = (place, name, size)
        if found is None or not first <= int(found[1]) <= last or key in _known:
            continue
        data = files.read(f"{LOG_FOLDER}/{name}", LOG_ENTRY_BYTES.value)
        if data is None:
            continue
        what = f"the entry {name} in the log of the table {place}"
        if len(data) > LOG_ENTRY_BYTES.value:
            raise DataError(f"{what}: {LOG_ENTRY_BYTES.hint}")
        _check_entry(data, what)
        _known.add(key)


def _check_entry(data: bytes, what: str) -> None:
    # With what is in texts: most entries are as deep as that nowhere, and write no bracket as its number.
    if _deepest(data) <= VALUE_DEPTH.value and _ESCAPED.search(data) is None:
        return
    if deepest_line(data) > VALUE_DEPTH.value:
        raise DataError(f"{what} has JSON that is too deep: {VALUE_DEPTH.hint}")
    for line in data.splitlines():
        try:
            action = _DECODER.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            # The library says what is wrong with it.
            continue
        for file in (action.add, action.remove):
            if file is not None and file.stats is not None and json_depth(file.stats.encode()) > VALUE_DEPTH.value:
                raise DataError(f"{what} has statistics of a file that are too deep: {VALUE_DEPTH.hint}")


def _deepest(data: bytes) -> int:
    """At least as deep as any value in it, in texts or not."""
    codes = np.frombuffer(data, dtype=np.uint8)
    opened = np.cumsum(np.isin(codes, list(_OPEN)).astype(np.int64) - np.isin(codes, list(_CLOSE)))
    # A text may close what it has not opened.
    return int((opened - np.minimum.accumulate(opened)).max(initial=0)) + 1
