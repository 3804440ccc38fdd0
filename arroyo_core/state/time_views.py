"""The view of an expiring table by event time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from arroyo_core.api.operations import DataOperation, Insert
from arroyo_core.api.signals import Watermark
from arroyo_core.api.views import ExpiringTimeKeyState
from arroyo_core.state.config import OPERATION_COLUMN
from arroyo_core.state.failures import StateValueError
from arroyo_core.state.messages import OperationCode, RecordBatchData
from arroyo_core.state.rows import RowFormat
from arroyo_core.state.runs import later
from arroyo_core.state.time_runs import TimeRun, TimeRuns, Times, cut_run, merge_runs


@dataclass(frozen=True, slots=True)
class UnreadRows:
    """Written rows that nobody has asked for yet: no row is before `first_us` or after `last_us`."""

    first_us: int
    last_us: int
    read: Callable[[], pa.Table]
    #: Of the file; empty for rows that are in memory.
    path: str = ""

    @classmethod
    def of_table(cls, row_format: RowFormat, rows: pa.Table) -> UnreadRows:
        times = row_format.times_us(rows)
        return cls(int(times.min()), int(times.max()), lambda: rows)


class ExpiringTimeKeyView(ExpiringTimeKeyState):
    """Batches by event time, oldest first; its methods are described by `ExpiringTimeKeyState`.

    Rows live in two halves: inserted since the last flush, and written. A row that expires before it was
    written never is. Written rows are read when their time is asked for.
    """

    def __init__(
        self,
        *,
        table: str,
        row_format: RowFormat,
        unread: list[UnreadRows],
        cutoff_us: int | None,
        retention_us: int,
    ) -> None:
        self._table = table
        self._format = row_format
        self._retention_us = retention_us
        self._inserted = TimeRuns(row_format)
        #: Written by an earlier checkpoint.
        self._written = TimeRuns(row_format)
        #: Rows and deletes for this epoch's checkpoint, in the order it happened.
        self._changes: list[RecordBatchData] = []
        #: The rows among them.
        self._flushed = TimeRuns(row_format)
        #: Rows of earlier checkpoints before this time are expired.
        self.expired_before_us: int | None = None
        self._unread = list(unread)
        #: Written rows before this time are past retention.
        self._cutoff_us = cutoff_us

    def insert(self, timestamp_us: int, batch: pa.RecordBatch) -> None:
        rows = self._format.encode(batch)
        times = self._format.times_us(rows)
        wrong = times[times != timestamp_us]
        if len(wrong):
            raise StateValueError(f"table {self._table!r}: a row of time {wrong[0]} was inserted as {timestamp_us}")
        self._inserted.gather(rows)

    def insert_batch(self, batch: pa.RecordBatch) -> None:
        self._inserted.gather(self._format.encode(batch))

    def delete(self, operation: DataOperation, batch: pa.RecordBatch) -> None:
        if isinstance(operation, Insert):
            raise StateValueError(f"table {self._table!r}: an insert is not a delete")
        self.flush()
        self._read_all()
        deletes = self._format.encode(batch, operation)
        for half in (self._written, self._flushed):
            rows = pa.concat_tables([self._format.empty(), *(run.rows for run in half.take_all()), deletes])
            half.add(TimeRun.of_rows(self._format, self._format.resolve_deletes(rows, keep_deletes=False)))
        self._changes.append(RecordBatchData(deletes))

    def get_min_time(self) -> int | None:
        # A bound of unread rows need not be the time of a row: what could hold the earliest time is read.
        while self._unread:
            earliest = min(self._unread, key=lambda rows: rows.first_us)
            known = self._first_known()
            if known is not None and known <= earliest.first_us:
                return known
            self._read(earliest.__eq__)
        return self._first_known()

    def times(self) -> list[int]:
        self._read_all()
        found = [run.times_us for half in self._halves() for run in half.runs()]
        times: list[int] = np.unique(np.concatenate(found)).tolist() if found else []
        return times

    def get_batches(self, timestamp_us: int) -> list[pa.RecordBatch]:
        self._read(lambda rows: rows.first_us <= timestamp_us <= rows.last_us)
        return [
            part
            for half in self._halves()
            for rows in half.at(timestamp_us)
            for part in self._format.decode_parts(rows)
        ]

    def count_parts(self, times_us: Times) -> npt.NDArray[np.int64]:
        self._read_times(times_us)
        counts = np.zeros(len(times_us), dtype=np.int64)
        for half in self._halves():
            counts += half.count(times_us)
        return counts

    def all_batches_for_watermark(
        self, watermark: Watermark | int | None = None
    ) -> Iterator[tuple[int, list[pa.RecordBatch]]]:
        watermark_us = watermark.event_time_us if isinstance(watermark, Watermark) else watermark
        for time_us in self.times():
            if watermark_us is None or time_us >= watermark_us - self._retention_us:
                yield time_us, self.get_batches(time_us)

    def expire_timestamp(self, timestamp_us: int) -> list[pa.RecordBatch]:
        return self.expire_timestamps(np.array([timestamp_us], dtype=np.int64))

    def expire_timestamps(self, times_us: Times) -> list[pa.RecordBatch]:
        if len(times_us) == 0:
            return []
        self._read_times(times_us)
        parts = self._written.take_before(self._first_other(times_us))
        if parts:
            # Nothing else that was written is as old: no deletes are needed.
            self.expired_before_us = later(self.expired_before_us, max(int(run.times_us[-1]) for run in parts) + 1)
        for half in (self._written, self._flushed):
            sent = half.take_times(times_us)
            self._record_deletes(sent)
            parts += sent
        parts += self._inserted.take_times(times_us)
        return [part for run in parts for part in self._format.decode_parts(run.rows)]

    def expire_before(self, time_us: int) -> list[tuple[int, list[pa.RecordBatch]]]:
        found: dict[int, list[pa.RecordBatch]] = {}
        for run in self._take_before(time_us):
            for part in cut_run(run):
                decoded = self._format.decode(part.rows)
                for each_us, start, end in part.by_time():
                    found.setdefault(each_us, []).append(decoded.slice(start, end - start))
        return sorted(found.items(), key=lambda item: item[0])

    def take_before(self, time_us: int) -> pa.RecordBatch | None:
        runs = self._take_before(time_us)
        # Rows of files and rows that were inserted may differ in other columns.
        own = [run.select(self._format.schema.schema.names) for run in runs]
        return self._format.decode(merge_runs(own).rows) if own else None

    def take_parts_before(self, time_us: int) -> list[pa.RecordBatch]:
        return [part for run in self._take_before(time_us) for part in self._format.decode_parts(run.rows)]

    def flush(self) -> None:
        self._flush(self._inserted.take_all())

    def flush_timestamp(self, timestamp_us: int) -> None:
        self._flush(self._inserted.take_times(np.array([timestamp_us], dtype=np.int64)))

    def take_changes(self, cutoff_us: int | None) -> list[RecordBatchData]:
        """All that the checkpoint has to write; rows before `cutoff_us` are past retention."""
        if cutoff_us is not None:
            self._drop_before(cutoff_us)
        self.flush()
        changes, self._changes = self._changes, []
        return changes

    def read_files(self, paths: Set[str]) -> None:
        """Read what is left to read of these files: others will stand for them."""
        self._read(lambda rows: rows.path in paths)

    def handle_checkpointed(self, cutoff_us: int | None) -> None:
        """The checkpoint was written: what was flushed is written now, what is past retention goes."""
        # Rows that come late belong to later files, which the time expired so far does not concern.
        self.expired_before_us = None
        for run in self._flushed.take_all():
            self._written.add(run)
        if cutoff_us is not None:
            self._drop_before(cutoff_us)

    def _take_before(self, time_us: int) -> list[TimeRun]:
        self._read(lambda rows: rows.first_us < time_us)
        written, flushed, inserted = (half.take_before(time_us) for half in self._halves())
        # Rows already handed to this epoch's checkpoint can only be taken back by deletes.
        self._record_deletes(flushed)
        self.expired_before_us = later(self.expired_before_us, time_us)
        return [*written, *flushed, *inserted]

    def _first_other(self, times_us: Times) -> int:
        """The earliest time that written rows may have, and that is none of these; after all times if there is none."""
        known = [first_us for run in self._written.runs() if (first_us := run.first_other(times_us)) is not None]
        return min([*known, *(rows.first_us for rows in self._unread)], default=int(np.iinfo(np.int64).max))

    def _first_known(self) -> int | None:
        return min((first_us for half in self._halves() if (first_us := half.first_us) is not None), default=None)

    def _read_all(self) -> None:
        self._read(lambda rows: True)

    def _read_times(self, times_us: Times) -> None:
        times = np.sort(times_us)
        self._read(
            lambda rows: bool(np.searchsorted(times, rows.first_us) < np.searchsorted(times, rows.last_us, "right"))
        )

    def _read(self, is_wanted: Callable[[UnreadRows], bool]) -> None:
        wanted = [rows for rows in self._unread if is_wanted(rows)]
        if wanted:
            self._unread = [rows for rows in self._unread if not is_wanted(rows)]
        for rows in wanted:
            live = self._format.expire(rows.read(), self._cutoff_us)
            self._written.add(TimeRun.of_rows(self._format, live.select(self._format.memory_schema.names)))

    def _halves(self) -> tuple[TimeRuns, TimeRuns, TimeRuns]:
        return (self._written, self._flushed, self._inserted)

    def _flush(self, runs: list[TimeRun]) -> None:
        if runs:
            run = merge_runs(runs)
            self._changes.append(RecordBatchData(run.rows))
            self._flushed.add(run)

    def _record_deletes(self, runs: list[TimeRun]) -> None:
        if not runs:
            return
        rows = pa.concat_tables([run.rows for run in runs])
        index = rows.schema.get_field_index(OPERATION_COLUMN)
        codes = pa.array(np.full(rows.num_rows, OperationCode.DELETE_TIME_KEY, dtype=np.uint8))
        deletes = rows.set_column(index, rows.schema.field(index), codes)
        self._changes.append(RecordBatchData(deletes))

    def _drop_before(self, cutoff_us: int) -> None:
        self._cutoff_us = later(self._cutoff_us, cutoff_us)
        # Their files may go.
        self._unread = [rows for rows in self._unread if rows.last_us >= cutoff_us]
        for half in self._halves():
            half.take_before(cutoff_us)
