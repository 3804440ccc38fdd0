"""How deep JSON is nested: found before a parser recurses as deep as the sender wants, and ends the process."""

from __future__ import annotations

import re

import numpy as np

from arroyo_core.api.limits import VALUE_DEPTH

#: A text in quotes, also one that does not end.
_QUOTED = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z)', re.DOTALL)
_OPEN, _CLOSE = b"[{", b"]}"


def json_depth(text: bytes) -> int:
    """How deep the values of a JSON text are nested, up to where it is no JSON; not exact below the limit."""
    most = text.count(b"{") + text.count(b"[")
    if most <= VALUE_DEPTH.value:
        # No need to be exact.
        return most
    codes = np.frombuffer(_QUOTED.sub(b"", text), dtype=np.uint8)
    steps = np.isin(codes, list(_OPEN)).astype(np.int64) - np.isin(codes, list(_CLOSE))
    return int(np.cumsum(steps).max(initial=0))


def deepest_line(data: bytes) -> int:
    """The greatest depth of some lines, of which each is a JSON text; not exact below the limit."""
    codes = np.frombuffer(data, dtype=np.uint8)
    opened = np.cumsum(np.isin(codes, list(_OPEN)), dtype=np.int64)
    ends = np.append(np.flatnonzero(codes == 10), len(codes) - 1) if len(codes) else np.zeros(0, np.int64)
    counts = np.diff(opened[ends], prepend=0)
    doubtful = np.flatnonzero(counts > VALUE_DEPTH.value)
    if not len(doubtful):
        return int(counts.max(initial=0))
    starts = np.concatenate([[0], ends[:-1] + 1])
    return max(json_depth(data[starts[line] : ends[line] + 1]) for line in doubtful.tolist())
