"""The view of an expiring table by event time."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from arroyo_core.api.signals import Watermark
from arroyo_core.state.config import OPERATION_COLUMN
from arroyo_core.state.failures import StateValueError
from arroyo_core.state.messages import (
    DataOperation,
    Insert,
    OperationCode,
    RecordBatchData,
    StateMessage,
    TableMessage,
)
from arroyo_core.state.rows import RowFormat
from arroyo_core.state.runs import later

#: Parts of no more rows than this, on average, are decoded together.
SMALL_PART_ROWS = 256


@dataclass(frozen=True, slots=True)
class UnreadRows:
    """Written rows that nobody has asked for yet: no row is before `first_us` or after `last_us`."""

    first_us: int
    last_us: int
    read: Callable[[], pa.Table]

    @classmethod
    def of_table(cls, row_format: RowFormat, rows: pa.Table) -> UnreadRows:
        times = row_format.times_us(rows)
        return cls(int(times.min()), int(times.max()), lambda: rows)


class ExpiringTimeKeyView:
    """Batches by event time, oldest first; made for windows.

    Rows live in two halves: inserted since the last flush, and written. A row that expires before it was
    written never is. Written rows are read when their time is asked for. Expiring the oldest times costs
    nothing: the checkpoint only records up to where the table is empty; a time in the
    middle is recorded as deletes. Rows of one time that were written by several epochs have no fixed order.
    """

    def __init__(
        self,
        *,
        table: str,
        row_format: RowFormat,
        unread: list[UnreadRows],
        cutoff_us: int | None,
        retention_us: int,
        send: Callable[[StateMessage], None],
    ) -> None:
        self._table = table
        self._format = row_format
        self._retention_us = retention_us
        self._send = send
        self._inserted: dict[int, list[pa.Table]] = {}
        #: Written by an earlier checkpoint.
        self._written: dict[int, list[pa.Table]] = {}
        #: Sent for this epoch's checkpoint.
        self._flushed: dict[int, list[pa.Table]] = {}
        self._written_times: list[int] = []
        #: Rows of earlier checkpoints before this time are expired.
        self.expired_before_us: int | None = None
        self._unread = list(unread)
        #: Written rows before this time are past retention.
        self._cutoff_us = cutoff_us

    def insert(self, timestamp_us: int, batch: pa.RecordBatch) -> None:
        """Add rows that all have the event time `timestamp_us`."""
        for time_us, rows in _split(self._format, self._format.encode(batch)):
            if time_us != timestamp_us:
                raise StateValueError(f"table {self._table!r}: a row of time {time_us} was inserted as {timestamp_us}")
            self._inserted.setdefault(time_us, []).append(rows)

    def insert_batch(self, batch: pa.RecordBatch) -> None:
        """Add rows of any event times."""
        for time_us, rows in _split(self._format, self._format.encode(batch)):
            self._inserted.setdefault(time_us, []).append(rows)

    def delete(self, operation: DataOperation, batch: pa.RecordBatch) -> None:
        """Delete what `operation` says for each row of `batch`; looks at every row of the table."""
        if isinstance(operation, Insert):
            raise StateValueError(f"table {self._table!r}: an insert is no delete")
        self.flush()
        self._read_all()
        deletes = self._format.encode(batch, operation)
        for half in (self._written, self._flushed):
            rows = pa.concat_tables(
                [self._format.empty(), *(part for parts in half.values() for part in parts), deletes]
            )
            kept = _split(self._format, self._format.resolve_deletes(rows, keep_deletes=False))
            half.clear()
            for time_us, part in kept:
                half.setdefault(time_us, []).append(part)
        self._send(TableMessage(self._table, RecordBatchData(deletes)))

    def get_min_time(self) -> int | None:
        """The earliest event time with rows, in microseconds."""
        # A bound of unread rows need not be the time of a row: what could hold the earliest time is read.
        while self._unread:
            earliest = min(self._unread, key=lambda rows: rows.first_us)
            known = min((time_us for half in self._halves() for time_us in half), default=None)
            if known is not None and known <= earliest.first_us:
                return known
            self._read(earliest.__eq__)
        return min((time_us for half in self._halves() for time_us in half), default=None)

    def times(self) -> list[int]:
        """Every event time with rows, in order."""
        self._read_all()
        return sorted({time_us for half in self._halves() for time_us in half})

    def get_batches(self, timestamp_us: int) -> list[pa.RecordBatch]:
        """The rows of one event time."""
        self._read(lambda rows: rows.first_us <= timestamp_us <= rows.last_us)
        return [
            self._format.decode(rows)
            for half in (self._written, self._flushed, self._inserted)
            for rows in half.get(timestamp_us, ())
        ]

    def all_batches_for_watermark(
        self, watermark: Watermark | int | None = None
    ) -> Iterator[tuple[int, list[pa.RecordBatch]]]:
        """Every event time with its rows, oldest first, that retention keeps at `watermark`; None keeps all."""
        watermark_us = watermark.event_time_us if isinstance(watermark, Watermark) else watermark
        for time_us in self.times():
            if watermark_us is None or time_us >= watermark_us - self._retention_us:
                yield time_us, self.get_batches(time_us)

    def expire_timestamp(self, timestamp_us: int) -> list[pa.RecordBatch]:
        """Remove the rows of one event time, and return them."""
        batches = self.get_batches(timestamp_us)
        self._inserted.pop(timestamp_us, None)
        self._forget_sent([timestamp_us])
        if timestamp_us in self._written:
            earliest_unread = min((rows.first_us for rows in self._unread), default=timestamp_us)
            if timestamp_us == self._first_written() and timestamp_us <= earliest_unread:
                self._expire_written(timestamp_us + 1)
            else:
                self._send_deletes(self._written.pop(timestamp_us))
        return batches

    def expire_before(self, time_us: int) -> list[tuple[int, list[pa.RecordBatch]]]:
        """Remove all rows before `time_us`, and return them, by event time, oldest first."""
        self._read(lambda rows: rows.first_us < time_us)
        times = sorted({found for half in self._halves() for found in half if found < time_us})
        expired = self._decode_times(times)
        for found, _ in expired:
            self._inserted.pop(found, None)
        self._forget_sent([found for found, _ in expired])
        self._expire_written(time_us)
        return expired

    def flush(self, cutoff_us: int | None = None) -> None:
        """Hand what was inserted to the next checkpoint; called by it, and by operators that like to."""
        if cutoff_us is not None:
            self._drop_before(cutoff_us)
        parts = [part for time_us in sorted(self._inserted) for part in self._inserted[time_us]]
        if parts:
            self._send(TableMessage(self._table, RecordBatchData(pa.concat_tables(parts))))
        for time_us, rows in self._inserted.items():
            self._flushed.setdefault(time_us, []).extend(rows)
        self._inserted.clear()

    def flush_timestamp(self, timestamp_us: int) -> None:
        """Hand what was inserted for one event time to the next checkpoint."""
        parts = self._inserted.pop(timestamp_us, [])
        if parts:
            self._send(TableMessage(self._table, RecordBatchData(pa.concat_tables(parts))))
            self._flushed.setdefault(timestamp_us, []).extend(parts)

    def handle_checkpointed(self, cutoff_us: int | None) -> None:
        """The checkpoint was written: what was flushed is written now, what is past retention goes."""
        # Rows that come late belong to later files, which the time expired so far does not concern.
        self.expired_before_us = None
        flushed = [(time_us, part) for time_us, parts in self._flushed.items() for part in parts]
        self._flushed.clear()
        self._remember_written(flushed)
        if cutoff_us is not None:
            self._drop_before(cutoff_us)

    def _decode_times(self, times_us: list[int]) -> list[tuple[int, list[pa.RecordBatch]]]:
        """The rows of each of these times, all of which have been read."""
        names = self._format.schema.schema.names
        parts = [
            (time_us, rows)
            for time_us in times_us
            for half in (self._written, self._flushed, self._inserted)
            for rows in half.get(time_us, ())
        ]
        rows_in_all = sum(rows.num_rows for _, rows in parts)
        if rows_in_all > SMALL_PART_ROWS * len(parts):
            return [(time_us, self.get_batches(time_us)) for time_us in times_us]
        # Where few rows share a time, decoding them time by time would cost as much for one row as for a thousand.
        found: dict[int, list[pa.RecordBatch]] = {time_us: [] for time_us in times_us}
        if parts:
            decoded = self._format.decode(pa.concat_tables([rows.select(names) for _, rows in parts]))
            start = 0
            for time_us, rows in parts:
                found[time_us].append(decoded.slice(start, rows.num_rows))
                start += rows.num_rows
        return list(found.items())

    def _read_all(self) -> None:
        self._read(lambda rows: True)

    def _read(self, is_wanted: Callable[[UnreadRows], bool]) -> None:
        wanted = [rows for rows in self._unread if is_wanted(rows)]
        if wanted:
            self._unread = [rows for rows in self._unread if not is_wanted(rows)]
        for rows in wanted:
            live = self._format.expire(rows.read(), self._cutoff_us)
            self._remember_written(_split(self._format, live.select(self._format.memory_schema.names)))

    def _halves(self) -> tuple[dict[int, list[pa.Table]], ...]:
        return (self._written, self._flushed, self._inserted)

    def _remember_written(self, parts: list[tuple[int, pa.Table]]) -> None:
        for time_us, part in parts:
            if time_us not in self._written:
                heapq.heappush(self._written_times, time_us)
            self._written.setdefault(time_us, []).append(part)

    def _first_written(self) -> int:
        while self._written_times[0] not in self._written:
            heapq.heappop(self._written_times)
        return self._written_times[0]

    def _expire_written(self, before_us: int) -> None:
        self.expired_before_us = later(self.expired_before_us, before_us)
        for time_us in [found for found in self._written if found < before_us]:
            del self._written[time_us]

    def _forget_sent(self, times_us: list[int]) -> None:
        """Rows already handed to this epoch's checkpoint can only be taken back by deletes."""
        parts = [part for time_us in times_us for part in self._flushed.pop(time_us, [])]
        if parts:
            self._send_deletes(parts)

    def _send_deletes(self, parts: list[pa.Table]) -> None:
        rows = pa.concat_tables(parts)
        index = rows.schema.get_field_index(OPERATION_COLUMN)
        codes = pa.array(np.full(rows.num_rows, OperationCode.DELETE_TIME_KEY, dtype=np.uint8))
        deletes = rows.set_column(index, rows.schema.field(index), codes)
        self._send(TableMessage(self._table, RecordBatchData(deletes)))

    def _drop_before(self, cutoff_us: int) -> None:
        self._cutoff_us = later(self._cutoff_us, cutoff_us)
        for half in self._halves():
            for time_us in [found for found in half if found < cutoff_us]:
                del half[time_us]


def _split(row_format: RowFormat, rows: pa.Table) -> list[tuple[int, pa.Table]]:
    """The rows by event time, oldest first; rows of one time keep their order."""
    if rows.num_rows == 0:
        return []
    times = row_format.times_us(rows)
    order = None if (times[:-1] <= times[1:]).all() else np.argsort(times, kind="stable")
    if order is not None:
        rows, times = rows.take(pa.array(order)), times[order]
    starts = np.concatenate([[0], np.flatnonzero(np.diff(times)) + 1, [len(times)]])
    return [(int(times[start]), rows.slice(int(start), int(end - start))) for start, end in pairwise(starts)]
