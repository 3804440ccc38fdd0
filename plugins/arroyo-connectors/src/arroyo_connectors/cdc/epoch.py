"""One epoch of the subtask that reads a table and its changes."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, Generic, TypeVar, cast

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from arroyo_connectors.cdc.chunks import SnapshotState, find_new
from arroyo_connectors.cdc.event_time import EventTime
from arroyo_connectors.cdc.log import Block, ChangeLog, ChangeReader, Sees
from arroyo_connectors.cdc.open_streams import open_streams
from arroyo_connectors.cdc.settings import FollowSettings, SnapshotMode
from arroyo_connectors.cdc.state import CdcChunk, CdcPosition
from arroyo_core.api import SourceCollector, SourceContext, SourceFinishType
from arroyo_core.api.hashing import is_hashable
from arroyo_core.api.updating import make_updates, row_ids
from arroyo_core.errors import ExternalError

#: How long to wait for changes before control is asked again.
QUIET_SECONDS = 0.05

P = TypeVar("P", bound=CdcPosition)
C = TypeVar("C", bound=CdcChunk)
R = TypeVar("R", bound=ChangeReader[Any])
B = TypeVar("B", bound=Block)


class CdcEpoch(Generic[P, C, R, B]):
    """Reads on until the epoch is over: `step` by step, then `close`."""

    def __init__(
        self,
        settings: FollowSettings,
        log: ChangeLog[P, C, R, B],
        state: SnapshotState[P, C],
        ctx: SourceContext,
        collector: SourceCollector,
    ) -> None:
        self._settings = settings
        self._log = log
        self._state = state
        self._ctx = ctx
        self._collector = collector
        position = self.position = state.position()
        self._rows = 0
        #: Whether the last look at the stream gave something.
        self._is_behind = False
        self._reader: R | None = None
        self._chunks: Sequence[C] | None = None
        self._seen: Sequence[Sees] = ()
        self._event_time = EventTime(
            max_lateness_us=settings.max_lateness_us,
            idle_after_us=settings.idle_after_us,
            latest_us=position.latest_us if position else None,
            is_idle=position.is_idle if position else False,
            quiet_us=position.quiet_us if position else 0,
            now_us=ctx.clock.now_us(),
        )
        #: Whether rows were sent of a chunk that is not complete: nothing may be tried again in this epoch.
        self.is_torn = False
        #: Whether the stream was opened by an epoch before, and has not worked in this one. Another process may have
        #: read meanwhile, and ended it: that is not an outage.
        self.is_stale = False

    def step(self) -> bool:
        """Read what is next, or wait a little; returns whether the data has ended.

        Raises `ArroyoError`, and `InterruptedByControlError`.
        """
        with self._log.translating():
            if self.position is None:
                self._save(self._log.begin())
            assert self.position is not None
            if not self.position.is_snapshot_complete:
                is_complete = self._read_chunk(self.position)
                return is_complete and self._settings.snapshot is SnapshotMode.ONLY
            if not self._log.has_changes(self.position):
                return True
            return self._read_changes(self.position)

    def disconnect(self) -> None:
        """After a failure: nothing of the connections is used again."""
        self._log.disconnect()
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        self.is_stale = False

    def close(self, finish: SourceFinishType | None) -> None:
        """The epoch is over, or has failed where `finish` is None; a stream that goes on stays open."""
        if finish is not None:
            # Nobody fails for a number: whoever reads on notices what is wrong.
            with contextlib.suppress(ExternalError):
                self._report()
        if finish is not SourceFinishType.CHECKPOINTED:
            open_streams.close(self._log.stream_key())
        elif self._reader is not None:
            open_streams.give_back(self._log.stream_key(), self._reader, self._reader.resumes_at)
            self._reader = None
        self.disconnect()

    def _read_chunk(self, position: P) -> bool:
        """Returns whether it was the last one."""
        settings, ctx = self._settings, self._ctx
        chunks = self._state.chunks()
        batches: list[pa.RecordBatch] = []
        has_key = bool(settings.key)

        def emit(batch: pa.RecordBatch) -> None:
            if has_key:
                batches.append(batch)
                return
            self.is_torn = True
            self._collect(batch, None)
            ctx.control()  # says that the source is alive: such a table is one chunk, however long it takes

        read = self._log.read_chunk(chunks[-1] if chunks else None, self._limit(settings.chunk_rows), emit)
        is_complete = read.chunk.last is None
        if is_complete:
            position = self._log.complete(position, read.chunk)
        # From here on nothing asks the database: the rows and what is known of them go together.
        for batch in batches:
            self._collect(batch, None)
        self.is_torn = False
        if settings.snapshot is not SnapshotMode.ONLY or not is_complete:
            self._state.add_chunk(read.chunk)
        self._chunks = None
        snapshot_rows = position.snapshot_rows + read.rows
        self._save(msgspec.structs.replace(position, is_snapshot_complete=is_complete, snapshot_rows=snapshot_rows))
        return is_complete

    def _read_changes(self, position: P) -> bool:
        """Returns whether the data has ended."""
        reader = self._open(position)
        if not reader.is_done:
            block = reader.read(self._limit(self._settings.batch_rows), QUIET_SECONDS)
            self.is_stale, self._is_behind = False, not reader.is_quiet
            if reader.ignored:
                self._ctx.count("ignored_changes", reader.ignored)
                reader.ignored = 0
            if block is not None:
                self._handle(block, reader)
            elif reader.is_quiet:
                self._event_time.check_idle(self._ctx.clock.now_us())
            position = self._log.moved(position, reader)
        if self._chunks_to_mind() and self._log.is_beyond(position):
            self._state.forget_chunks()
            self._chunks, self._seen = (), ()
            reader.leave_out(None)
        self._save(position)
        watermark = self._event_time.take()
        if watermark is not None:
            self._collector.broadcast_watermark(watermark)
        return reader.is_done

    def _handle(self, block: B, reader: R) -> None:
        if self._chunks_to_mind():
            is_new = self._find_new(block, reader)
            block = block if is_new.all() else block.take(np.flatnonzero(is_new))
        if len(block.is_retract):
            self._collect(reader.batch(block), block.is_retract)

    def _find_new(self, block: B, reader: R) -> npt.NDArray[np.bool_]:
        """Which rows the snapshot does not have as they are after their change."""
        chunks = self._chunks_to_mind()

        def find_behind(rows: npt.NDArray[np.int64], numbers: Sequence[int]) -> Sequence[bool]:
            return self._log.find_behind(reader, block.take(rows), [chunks[number].last or () for number in numbers])

        return find_new(block.transactions, self._seen, find_behind)

    def _chunks_to_mind(self) -> Sequence[C]:
        if self._chunks is None:
            self._chunks = self._state.chunks()
            self._seen = self._log.sights(self._chunks)
        return self._chunks

    def _collect(self, batch: pa.RecordBatch, is_retract: npt.NDArray[np.bool_] | None) -> None:
        settings = self._settings
        self._rows += batch.num_rows
        times = batch.column(settings.event_time_field) if settings.event_time_field else None
        if not settings.inserts_only:
            flags = np.zeros(batch.num_rows, dtype=np.bool_) if is_retract is None else is_retract
            batch = make_updates(batch, is_retract=flags, ids=row_ids(batch, self._id_columns()))
        self._collector.collect(batch)
        self._event_time.observe(times, self._ctx.clock.now_us())

    def _id_columns(self) -> list[str]:
        """The primary key; where it is not read, or there is none, all columns that can be keys."""
        schema, key = self._settings.schema, self._settings.key
        if key and all(name in schema.names for name in key):
            return list(key)
        return [field.name for field in schema if is_hashable(field.type)]

    def _limit(self, rows: int) -> int:
        """So many, or what the epoch has left."""
        left = self._ctx.rows_left()
        return rows if left is None else max(1, min(rows, left))

    def _save(self, position: P) -> None:
        self.position = msgspec.structs.replace(
            position,
            latest_us=self._event_time.latest_us,
            is_idle=self._event_time.is_idle,
            quiet_us=self._event_time.quiet_us(self._ctx.clock.now_us()),
        )
        self._state.save(self.position)

    def _open(self, position: P) -> R:
        if self._reader is not None:
            return self._reader
        # Readers of this key are this log's.
        reader = cast("R | None", open_streams.borrow(self._log.stream_key(), self._log.resumes_at(position)))
        self.is_stale = reader is not None
        if reader is None:
            reader = self._log.open(position)
        self._reader = reader
        reader.set_warn(self._ctx.warn)
        self._log.use(reader)
        has_chunks = bool(self._chunks_to_mind())
        reader.leave_out(self._seen[0] if has_chunks else None)
        if not has_chunks:
            self._log.disconnect()
        return reader

    def _report(self) -> None:
        """How far the source is behind: rows, by what a row has taken of the log in this epoch."""
        position = self.position
        if self._reader is None or position is None:
            return
        lag = self._log.bytes_behind(position) if self._is_behind else 0
        read = self._log.bytes_read(position)
        rows = lag * self._rows // read if read > 0 else 0
        self._ctx.report_backlog(max(rows, 1 if self._log.is_within(position) else 0))
        self._log.check_lag(position, lag)
