"""`PendingRows`: rows that wait in memory for the watermark to pass them; a state table holds them, too."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from arroyo_std.joins.layout import Mask
from arroyo_std.large_rows import is_large
from arroyo_std.windows.times import Times

#: So many parts are merged into one: each is looked at whenever the watermark passes its first row.
MERGE_PARTS = 64


@dataclass(frozen=True, slots=True)
class _Part:
    first_us: int
    rows: pa.RecordBatch = field(repr=False)
    due_us: Times = field(repr=False)


class PendingRows:
    """Rows by the time at which they are due, in no particular order."""

    def __init__(self) -> None:
        self._parts: list[_Part] = []
        self._most_parts = MERGE_PARTS

    def add(self, rows: pa.RecordBatch, due_us: Times) -> None:
        """Rows that are due when the watermark is after `due_us`."""
        if rows.num_rows == 0:
            return
        self._parts.append(_Part(int(due_us.min()), rows, due_us))
        if len(self._parts) >= self._most_parts:
            self._parts = _gather(self._parts)
            self._most_parts = len(self._parts) + MERGE_PARTS

    def take(self, watermark_us: int) -> list[tuple[pa.RecordBatch, Times]]:
        """Remove the rows that are due, and return them with the times at which they were, in few parts."""
        ready = [part for part in self._parts if part.first_us < watermark_us]
        self._parts = [part for part in self._parts if part.first_us >= watermark_us]
        taken = []
        for part in _gather(ready):
            is_due = part.due_us < watermark_us
            if is_due.all():
                taken.append((part.rows, part.due_us))
                continue
            self._parts.append(_filter(part, ~is_due))
            due = _filter(part, is_due)
            taken.append((due.rows, due.due_us))
        return taken


def _gather(parts: list[_Part]) -> list[_Part]:
    """The same rows in one part, or in several where one batch might not hold them."""
    gathered: list[_Part] = []
    held: list[_Part] = []
    for part in parts:
        if held and is_large([each.rows for each in [*held, part]]):
            gathered.append(_joined(held))
            held = []
        held.append(part)
    return [*gathered, _joined(held)] if held else gathered


def _joined(parts: list[_Part]) -> _Part:
    if len(parts) == 1:
        return parts[0]
    due_us = np.concatenate([part.due_us for part in parts])
    return _Part(int(due_us.min()), pa.concat_batches([part.rows for part in parts]), due_us)


def _filter(part: _Part, mask: Mask) -> _Part:
    kept = part.due_us[mask]
    return _Part(int(kept.min()), part.rows.filter(pa.array(mask)), kept)
