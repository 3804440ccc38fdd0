"""`PendingRows`: rows that wait in memory for the watermark to pass them; a state table holds them, too."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from arroyo_std.joins.layout import Mask
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

    def add(self, rows: pa.RecordBatch, due_us: Times) -> None:
        """Rows that are due when the watermark is after `due_us`."""
        if rows.num_rows == 0:
            return
        self._parts.append(_Part(int(due_us.min()), rows, due_us))
        if len(self._parts) >= MERGE_PARTS:
            merged, due = self._gather(self._parts)
            self._parts = [_Part(int(due.min()), merged, due)]

    def take(self, watermark_us: int) -> tuple[pa.RecordBatch, Times] | None:
        """Remove the rows that are due, and return them with the times at which they were; None if there are none."""
        ready = [part for part in self._parts if part.first_us < watermark_us]
        if not ready:
            return None
        self._parts = [part for part in self._parts if part.first_us >= watermark_us]
        rows, due_us = self._gather(ready)
        is_due = due_us < watermark_us
        if not is_due.all():
            self._parts.append(_filter(rows, due_us, ~is_due))
            rows, due_us = rows.filter(pa.array(is_due)), due_us[is_due]
        return rows, due_us

    def _gather(self, parts: list[_Part]) -> tuple[pa.RecordBatch, Times]:
        if len(parts) == 1:
            return parts[0].rows, parts[0].due_us
        return pa.concat_batches([part.rows for part in parts]), np.concatenate([part.due_us for part in parts])


def _filter(rows: pa.RecordBatch, due_us: Times, mask: Mask) -> _Part:
    kept = due_us[mask]
    return _Part(int(kept.min()), rows.filter(pa.array(mask)), kept)
