"""`PendingSessions`: the sessions of an epoch in memory, of which a watermark looks only at those that have begun."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from arroyo_std.aggregates.plan import AggregatePlan
from arroyo_std.windows.sessions import Sessions, concat_sessions, merge_sessions
from arroyo_std.windows.times import is_ascending

#: Sessions are merged when they are this many, or as many as there were after the last merge.
MERGE_ROWS = 65_536
#: The same for their bytes.
MERGE_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class _Run:
    """Sessions by when they begin: the first and the last time."""

    sessions: Sessions
    first_us: int
    last_us: int

    @classmethod
    def of(cls, sessions: Sessions) -> _Run:
        firsts_us = sessions.firsts_us
        return cls(sessions, int(firsts_us.min()), int(firsts_us.max()))

    def cut(self, time_us: int) -> tuple[Sessions, _Run]:
        """The sessions that begin before this time, and those that do not; there are some of both.

        What is left is sorted, so that later cuts of it only search.
        """
        sessions, firsts_us = self.sessions, self.sessions.firsts_us
        if not is_ascending(firsts_us):
            order = np.argsort(firsts_us, kind="stable")
            sessions, firsts_us = sessions.take(order), firsts_us[order]
        place = int(np.searchsorted(firsts_us, time_us))
        return sessions.slice(0, place), _Run(sessions.slice(place), int(firsts_us[place]), self.last_us)


class PendingSessions:
    """Adds sessions, and takes out those that have begun by some time.

    A session that ends by then has no rows as late, nor has one that goes on with it begun later: what begins at that
    time or after it may wait unseen, however much of it there is.
    """

    def __init__(self, plan: AggregatePlan, *, gap_us: int) -> None:
        self._plan = plan
        self._gap_us = gap_us
        #: Merged, and looked at before.
        self._open: Sessions | None = None
        self._open_until_us = 0
        self._runs: list[_Run] = []
        self._rows = self._merged_rows = 0
        self._bytes = self._merged_bytes = 0

    def add(self, sessions: Sessions) -> None:
        """Take sessions that may belong together with others."""
        if not len(sessions):
            return
        self._runs.append(_Run.of(sessions))
        self._rows += len(sessions)
        self._bytes += sessions.rows.nbytes
        if self._rows > 2 * self._merged_rows + MERGE_ROWS or self._bytes > 2 * self._merged_bytes + MERGE_BYTES:
            merged = self.take_all()
            assert merged is not None
            self._set(None, [_Run.of(merged)])
            self._merged_rows, self._merged_bytes = self._rows, self._bytes

    def is_due(self, until_us: int) -> bool:
        """False if no session ends by then."""
        if self._open is not None and self._open_until_us <= until_us:
            return True
        return any(run.first_us + self._gap_us <= until_us for run in self._runs)

    def take_begun(self, until_us: int) -> Sessions | None:
        """Remove all sessions that begin before this time, and return them merged; None if there are none."""
        begun = [] if self._open is None else [self._open]
        waiting = []
        for run in self._runs:
            if run.first_us >= until_us:
                waiting.append(run)
            elif run.last_us < until_us:
                begun.append(run.sessions)
            else:
                head, rest = run.cut(until_us)
                begun.append(head)
                waiting.append(rest)
        self._set(None, waiting)
        return self._merge(begun) if begun else None

    def put_back(self, sessions: Sessions) -> None:
        """Keep these of those that were taken last."""
        self._set(sessions if len(sessions) else None, self._runs)

    def take_all(self) -> Sessions | None:
        """Remove all sessions, and return them merged; None if there are none."""
        parts = [*([] if self._open is None else [self._open]), *(run.sessions for run in self._runs)]
        self._set(None, [])
        return self._merge(parts) if parts else None

    def _merge(self, parts: Sequence[Sessions]) -> Sessions:
        return merge_sessions(concat_sessions(parts), self._plan, gap_us=self._gap_us)

    def _set(self, open_ones: Sessions | None, runs: list[_Run]) -> None:
        self._open = open_ones
        if open_ones is not None:
            self._open_until_us = int(open_ones.lasts_us.min()) + self._gap_us
        self._runs = runs
        held = [*([] if open_ones is None else [open_ones]), *(run.sessions for run in runs)]
        self._rows = sum(map(len, held))
        self._bytes = sum(each.rows.nbytes for each in held)
        self._merged_rows = min(self._merged_rows, self._rows)
        self._merged_bytes = min(self._merged_bytes, self._bytes)
