"""One epoch of the subtask that reads the table."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from arroyo_connectors import EventTime, find_new

from arroyo_core.api import SourceCollector, SourceContext, SourceFinishType
from arroyo_core.api.hashing import is_hashable
from arroyo_core.api.updating import make_updates, row_ids
from arroyo_core.errors import ExternalError
from arroyo_postgres.cdc.changes import Block, ChangeReader
from arroyo_postgres.cdc.lsn import parse_lsn
from arroyo_postgres.cdc.open_streams import open_streams
from arroyo_postgres.cdc.settings import CdcSettings, SnapshotMode
from arroyo_postgres.cdc.slots import find_start, open_changes, session_name
from arroyo_postgres.cdc.snapshot import SETTINGS, SnapshotReader, find_behind
from arroyo_postgres.cdc.state import CdcPosition, CdcState, Chunk
from arroyo_postgres.cdc.visibility import Visibility

if TYPE_CHECKING:
    import psycopg

#: How long to wait for changes before control is asked again.
QUIET_SECONDS = 0.05


class CdcEpoch:
    """Reads on until the epoch is over: `step` by step, then `close`."""

    def __init__(self, settings: CdcSettings, ctx: SourceContext, collector: SourceCollector, state: CdcState) -> None:
        self._settings = settings
        self._ctx = ctx
        self._collector = collector
        self._state = state
        self._position = self._state.position()
        #: Where the epoch began. The next one but one confirms it.
        self._begin_lsn = self._position.lsn if self._position is not None else 0
        #: What is committed: the epoch before the last one ended here.
        self._confirmable_lsn = self._position.former_lsn if self._position is not None else 0
        self._rows = 0
        #: Whether the last look at the stream gave something.
        self._is_behind = False
        self._connection: psycopg.Connection[Any] | None = None
        self._reader: ChangeReader | None = None
        self._chunks: Sequence[Chunk] | None = None
        self._seen: list[Visibility] = []
        position = self._position
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

    @property
    def lsn(self) -> int:
        return self._position.lsn if self._position is not None else 0

    def step(self) -> bool:
        """Read what is next, or wait a little; returns whether the data has ended.

        Raises `ArroyoError`, and `InterruptedByControlError`.
        """
        with self._settings.server.translating(f"cannot read table {self._settings.table_name}"):
            if self._position is None:
                self._position = self._begin()
                self._save()
            if not self._position.is_snapshot_complete:
                self._read_chunk(self._position)
                return self._position.is_snapshot_complete and self._settings.snapshot is SnapshotMode.ONLY
            if self._settings.snapshot is SnapshotMode.ONLY:
                return True
            return self._read_changes(self._position)

    def disconnect(self) -> None:
        """After a failure: nothing of the connections is used again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
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
        reader, position = self._reader, self._position
        if finish is not SourceFinishType.CHECKPOINTED:
            open_streams.close(self._stream_key())
        elif reader is not None and position is not None and reader.place == self._place(position):
            open_streams.give_back(self._stream_key(), reader, reader.place)
            self._reader = None
        self.disconnect()

    def _begin(self) -> CdcPosition:
        """The first epoch: where the slot is, and where the end."""
        settings, connection = self._settings, self._connect()
        until_lsn = None
        lsn = 0
        if settings.snapshot is not SnapshotMode.ONLY:
            lsn = find_start(settings, connection, self._ctx)
            if settings.ends:
                # A record of our own: the stream comes to its end for certain, and not to that of the log.
                row = connection.execute("select pg_logical_emit_message(true, 'arroyo', 'until')::text").fetchone()
                assert row is not None
                until_lsn = parse_lsn(row[0])
        self._begin_lsn = self._confirmable_lsn = lsn
        is_complete = settings.snapshot is SnapshotMode.NEVER
        return CdcPosition(lsn=lsn, former_lsn=lsn, until_lsn=until_lsn, is_snapshot_complete=is_complete)

    def _read_chunk(self, position: CdcPosition) -> None:
        settings, ctx = self._settings, self._ctx
        chunks = self._state.chunks()
        left = ctx.rows_left()
        limit = settings.chunk_rows if left is None else max(1, min(settings.chunk_rows, left))
        reader = SnapshotReader(settings, self._connect())
        batches: list[pa.RecordBatch] = []
        has_key = bool(settings.table.key)

        def emit(batch: pa.RecordBatch) -> None:
            if has_key:
                batches.append(batch)
                return
            self.is_torn = True
            self._collect(batch, None)
            ctx.control()  # says that the source is alive: such a table is one chunk, however long it takes

        read = reader.read(chunks[-1] if chunks else None, limit, emit)
        is_complete = read.chunk.last is None
        horizon_lsn = 0
        if is_complete:
            row = self._connect().execute("select pg_current_wal_insert_lsn()::text").fetchone()
            assert row is not None
            horizon_lsn = parse_lsn(row[0])
        # From here on nothing asks the database: the rows and what is known of them go together.
        for batch in batches:
            self._collect(batch, None)
        self.is_torn = False
        if settings.snapshot is not SnapshotMode.ONLY or not is_complete:
            self._state.add_chunk(read.chunk)
        self._position = msgspec.structs.replace(
            position,
            is_snapshot_complete=is_complete,
            horizon_lsn=horizon_lsn,
            snapshot_rows=position.snapshot_rows + read.rows,
        )
        self._chunks = None
        self._save()

    def _read_changes(self, position: CdcPosition) -> bool:
        settings, ctx = self._settings, self._ctx
        reader = self._open(position)
        if reader.is_done:
            return True
        left = ctx.rows_left()
        limit = settings.batch_rows if left is None else max(1, min(settings.batch_rows, left))
        block = reader.read(limit, QUIET_SECONDS)
        self.is_stale, self._is_behind = False, not reader.is_quiet
        if reader.ignored:
            ctx.count("ignored_changes", reader.ignored)
            reader.ignored = 0
        if block is not None:
            self._handle(block, reader)
        elif reader.is_quiet:
            self._event_time.check_idle(ctx.clock.now_us())
        lsn, read_of_next = reader.place
        self._position = msgspec.structs.replace(position, lsn=lsn, read_of_next=read_of_next, system=reader.system)
        if self._chunks_to_mind() and lsn >= position.horizon_lsn:
            self._state.forget_chunks()
            self._chunks, self._seen = [], []
            reader.leave_out(None)
        self._save()
        self._send_watermark()
        return reader.is_done

    def _handle(self, block: Block, reader: ChangeReader) -> None:
        if self._chunks_to_mind():
            block = block.filter(self._is_new(block, reader))
        if len(block.xids):
            self._collect(reader.batch(block), block.changes.is_retract)

    def _is_new(self, block: Block, reader: ChangeReader) -> npt.NDArray[np.bool_]:
        """Which rows the snapshot does not have as they are after their change."""
        chunks = self._chunks_to_mind()
        key = self._settings.table.key

        def find(rows: npt.NDArray[np.int64], numbers: Sequence[int]) -> list[bool]:
            keys = reader.texts(block.take(rows), tuple(column.name for column in key))
            bounds = [chunks[number].last or () for number in numbers]
            return find_behind(self._connect(), key, keys, bounds)

        return find_new(block.xids.tolist(), [seen.sees for seen in self._seen], find)

    def _chunks_to_mind(self) -> Sequence[Chunk]:
        if self._chunks is None:
            self._chunks = self._state.chunks()
            self._seen = [Visibility.parse(chunk.seen) for chunk in self._chunks]
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
        names = [column.name for column in self._settings.columns]
        key = [column.name for column in self._settings.table.key]
        if key and all(name in names for name in key):
            return key
        return [column.name for column in self._settings.columns if is_hashable(column.type)]

    def _send_watermark(self) -> None:
        watermark = self._event_time.take()
        if watermark is not None:
            self._collector.broadcast_watermark(watermark)

    def _save(self) -> None:
        assert self._position is not None
        self._position = msgspec.structs.replace(
            self._position,
            former_lsn=self._begin_lsn,
            latest_us=self._event_time.latest_us,
            is_idle=self._event_time.is_idle,
            quiet_us=self._event_time.quiet_us(self._ctx.clock.now_us()),
        )
        self._state.save(self._position)

    def _connect(self) -> psycopg.Connection[Any]:
        """The connection for queries, which is not that of the stream."""
        if self._connection is None:
            self._connection = self._settings.server.connect(name="arroyo snapshot", settings=SETTINGS)
        return self._connection

    def _open(self, position: CdcPosition) -> ChangeReader:
        if self._reader is None:
            reader = open_streams.borrow(self._stream_key(), self._place(position))
            self.is_stale = reader is not None
            if reader is None:
                reader = open_changes(self._settings, self._connect(), self._ctx, position)
            self._reader = reader
            reader.set_warn(self._ctx.warn)
            reader.confirm(self._confirmable_lsn)
            has_chunks = bool(self._chunks_to_mind())
            reader.leave_out(self._seen[0].sees if has_chunks else None)
            if not has_chunks and self._connection is not None:
                self._connection.close()
                self._connection = None
        return self._reader

    def _place(self, position: CdcPosition) -> tuple[int, int]:
        return position.lsn, position.read_of_next

    def _stream_key(self) -> tuple[object, ...]:
        """All that a reader depends on."""
        settings = self._settings
        what = (settings.server, settings.slot, settings.publication, settings.table.oid, settings.columns)
        return (*what, settings.inserts_only, settings.ignores_truncate, session_name(self._ctx.task_info))

    def _report(self) -> None:
        """How far the source is behind: rows, by what a row has taken of the log in this epoch."""
        position = self._position
        if self._reader is None or position is None:
            return
        end_lsn = self._end_lsn() if self._is_behind else position.lsn
        lag, moved = max(0, end_lsn - position.lsn), position.lsn - self._begin_lsn
        rows = lag * self._rows // moved if moved > 0 else 0
        self._ctx.report_backlog(max(rows, 1 if position.read_of_next else 0))
        kept = end_lsn - self._confirmable_lsn
        if kept > self._settings.warn_lag_bytes:
            self._ctx.warn(
                f"the server keeps {kept >> 20} MiB of its log for slot {self._settings.slot!r}; {lag >> 20} MiB of it "
                "are not read yet",
                topic="lag of the slot",
            )

    def _end_lsn(self) -> int:
        """The end of the server's log, which its stream does not tell."""
        with self._settings.server.translating("cannot ask how far the log is"):
            row = self._connect().execute("select pg_current_wal_lsn()::text").fetchone()
        assert row is not None
        return parse_lsn(row[0])
