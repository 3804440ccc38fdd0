"""Rows in memory by event time: runs sorted by it, which are cut by binary search.

No step is taken for each row, nor for each event time: a table whose rows all have times of their own costs as much
as one whose rows share a few.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from arroyo_core.state.chunks import cut_chunks, take_rows
from arroyo_core.state.rows import RowFormat
from arroyo_core.state.runs import MERGED_RUNS, count_similar

Times = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TimeRun:
    """Rows in the order of their event times; those of one time in the order they came."""

    times_us: Times = field(repr=False)
    rows: pa.Table = field(repr=False)

    @classmethod
    def of_rows(cls, row_format: RowFormat, rows: pa.Table) -> TimeRun:
        return cls.of_timed(row_format.times_us(rows), rows)

    @classmethod
    def of_timed(cls, times_us: Times, rows: pa.Table) -> TimeRun:
        """Rows in any order, with their times."""
        if bool((times_us[:-1] <= times_us[1:]).all()):
            return cls(times_us, rows)
        order = np.argsort(times_us, kind="stable")
        return cls(times_us[order], take_rows(rows, order))

    def slice(self, start: int, end: int) -> TimeRun:
        return TimeRun(self.times_us[start:end], self.rows.slice(start, end - start))

    def select(self, names: Sequence[str]) -> TimeRun:
        """With some of the columns."""
        return TimeRun(self.times_us, self.rows.select(names))

    def first_other(self, times_us: Times) -> int | None:
        """The earliest event time that is none of these."""
        start, is_among = self._among(times_us)
        if start:
            return int(self.times_us[0])
        place = int(np.argmin(is_among)) if not is_among.all() else len(is_among)
        return int(self.times_us[place]) if place < len(self.times_us) else None

    def split(self, times_us: Times) -> tuple[TimeRun, TimeRun]:
        """The rows of these times, and the others."""
        start, is_among = self._among(times_us)
        end, length = start + len(is_among), len(self.times_us)
        if is_among.all() and start == 0:
            return self.slice(0, end), self.slice(end, length)
        if is_among.all() and end == length:
            return self.slice(start, length), self.slice(0, start)
        mask = np.zeros(length, dtype=np.bool_)
        mask[start:end] = is_among
        return self._filter(mask), self._filter(~mask)

    def _among(self, times_us: Times) -> tuple[int, npt.NDArray[np.bool_]]:
        """From which row on rows may have one of these times, and which of those that follow have; there is a time."""
        start = int(np.searchsorted(self.times_us, times_us.min()))
        end = int(np.searchsorted(self.times_us, times_us.max(), side="right"))
        return start, np.isin(self.times_us[start:end], times_us)

    def _filter(self, mask: npt.NDArray[np.bool_]) -> TimeRun:
        return TimeRun(self.times_us[mask], self.rows.filter(pa.array(mask)))

    def by_time(self) -> Iterator[tuple[int, int, int]]:
        """Each event time, with its first row and the one after its last; a step for each of them."""
        starts = [0, *(np.flatnonzero(np.diff(self.times_us)) + 1).tolist(), len(self.times_us)]
        for start, end in pairwise(starts):
            yield int(self.times_us[start]), start, end


class TimeRuns:
    """Some runs, oldest first. Rows of one time come in the order of the runs."""

    def __init__(self, row_format: RowFormat) -> None:
        self._format = row_format
        self._runs: list[TimeRun] = []
        #: Rows that nobody has looked at yet, with their times; they become one run when someone does.
        self._gathered: list[tuple[Times, pa.Table]] = []
        self._gathered_first_us: int | None = None

    @property
    def first_us(self) -> int | None:
        """The earliest event time."""
        known = [] if self._gathered_first_us is None else [self._gathered_first_us]
        return min([*known, *(int(run.times_us[0]) for run in self._runs)], default=None)

    def add(self, run: TimeRun) -> None:
        """Keep a run as it is."""
        if len(run.times_us):
            self._runs.append(run)

    def gather(self, rows: pa.Table) -> None:
        """Keep rows in any order; they are merged with those gathered before."""
        if rows.num_rows:
            times = self._format.times_us(rows)
            first_us, known = int(times.min()), self._gathered_first_us
            self._gathered.append((times, rows))
            self._gathered_first_us = first_us if known is None else min(first_us, known)

    def runs(self) -> Sequence[TimeRun]:
        self._settle()
        return tuple(self._runs)

    def take_all(self) -> list[TimeRun]:
        found = list(self.runs())
        self._runs.clear()
        return found

    def take_before(self, time_us: int) -> list[TimeRun]:
        """Remove the rows before `time_us`; a run for each one that has any."""
        earliest_us = self.first_us
        if earliest_us is None or earliest_us >= time_us:
            return []
        found, kept = [], []
        for run in self.runs():
            cut = int(np.searchsorted(run.times_us, time_us))
            if cut:
                found.append(run.slice(0, cut))
            if cut < len(run.times_us):
                kept.append(run.slice(cut, len(run.times_us)) if cut else run)
        self._runs = kept
        return found

    def take_times(self, times_us: Times) -> list[TimeRun]:
        """Remove the rows of these times; a run for each one that has any."""
        split = [run.split(times_us) for run in self.runs()]
        self._runs = [others for _, others in split if len(others.times_us)]
        return [found for found, _ in split if len(found.times_us)]

    def at(self, time_us: int) -> list[pa.Table]:
        """The rows of one time; a table for each run that has any."""
        found = []
        for run in self.runs():
            start = int(np.searchsorted(run.times_us, time_us))
            count = int(np.searchsorted(run.times_us, time_us, side="right")) - start
            if count:
                found.append(run.rows.slice(start, count))
        return found

    def count(self, times_us: Times) -> npt.NDArray[np.int64]:
        """How many runs have rows of each of these times."""
        counts = np.zeros(len(times_us), dtype=np.int64)
        for run in self.runs():
            counts += np.searchsorted(run.times_us, times_us) < np.searchsorted(run.times_us, times_us, side="right")
        return counts

    def _settle(self) -> None:
        if not self._gathered:
            return
        gathered, self._gathered, self._gathered_first_us = self._gathered, [], None
        self._runs.append(_merged(gathered))
        while (count := count_similar([len(run.times_us) for run in reversed(self._runs)])) >= MERGED_RUNS:
            self._runs[-count:] = [_merged([(run.times_us, run.rows) for run in self._runs[-count:]])]


def cut_run(run: TimeRun) -> Iterator[TimeRun]:
    """The rows in order, in parts that may be one chunk each."""
    start = 0
    for part in cut_chunks(run.rows):
        yield TimeRun(run.times_us[start : start + part.num_rows], part)
        start += part.num_rows


def merge_runs(runs: Sequence[TimeRun]) -> TimeRun:
    """One run of several; there is at least one."""
    return runs[0] if len(runs) == 1 else _merged([(run.times_us, run.rows) for run in runs])


def _merged(parts: Sequence[tuple[Times, pa.Table]]) -> TimeRun:
    if len(parts) == 1:
        return TimeRun.of_timed(*parts[0])
    times_us = np.concatenate([times for times, _ in parts])
    return TimeRun.of_timed(times_us, pa.concat_tables([rows for _, rows in parts]))
