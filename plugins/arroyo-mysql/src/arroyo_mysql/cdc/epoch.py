"""One epoch of the subtask that reads the table."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from arroyo_connectors import EventTime, find_new

from arroyo_core.api import SourceCollector, SourceContext, SourceFinishType
from arroyo_core.api.hashing import is_hashable
from arroyo_core.api.updating import make_updates, row_ids
from arroyo_core.errors import ExternalError
from arroyo_mysql.cdc import catalogue
from arroyo_mysql.cdc.changes import ChangeReader
from arroyo_mysql.cdc.held import Block
from arroyo_mysql.cdc.keys import find_behind, typed_keys
from arroyo_mysql.cdc.open_streams import open_streams
from arroyo_mysql.cdc.opening import open_changes, replica_number
from arroyo_mysql.cdc.places import Place, Sight
from arroyo_mysql.cdc.settings import CdcSettings, SnapshotMode
from arroyo_mysql.cdc.snapshot import SnapshotReader
from arroyo_mysql.cdc.state import CdcPosition, CdcState, Chunk
from arroyo_mysql.connection import Session

#: How long to wait for changes before control is asked again.
QUIET_SECONDS = 0.05
#: How long a query of the snapshot may take, in seconds.
_ANSWER_SECONDS = 3600


class CdcEpoch:
    """Reads on until the epoch is over: `step` by step, then `close`."""

    def __init__(self, settings: CdcSettings, ctx: SourceContext, collector: SourceCollector, state: CdcState) -> None:
        self._settings = settings
        self._ctx = ctx
        self._collector = collector
        self._state = state
        position = self._position = state.position()
        self._rows = 0
        #: How many bytes of the binlog were read, as far as they are of one file.
        self._begin = position.place if position is not None else None
        #: Whether the last look at the stream gave something.
        self._is_behind = False
        self._session: Session | None = None
        self._reader: ChangeReader | None = None
        self._chunks: Sequence[Chunk] | None = None
        self._seen: list[Sight] = []
        self._horizon: Sight | None = None
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
        """Read what is next, or wait a little; returns whether the data has ended. Raises `ArroyoError`."""
        with self._settings.server.translating(f"cannot read table {self._settings.name}"):
            if self._position is None:
                self._position = self._start()
                self._save()
            if not self._position.is_snapshot_complete:
                self._read_chunk(self._position)
                return self._position.is_snapshot_complete and self._settings.snapshot is SnapshotMode.ONLY
            if self._position.place is None:
                return True
            return self._read_changes(self._position, self._position.place)

    def disconnect(self) -> None:
        """After a failure: nothing of the connections is used again."""
        if self._session is not None:
            self._session.close()
            self._session = None
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
        elif reader is not None and position is not None:
            open_streams.give_back(self._stream_key(), reader, (position.place, position.begun))
            self._reader = None
        self.disconnect()

    def _start(self) -> CdcPosition:
        """The first epoch: where the binlog is now."""
        settings = self._settings
        if settings.snapshot is SnapshotMode.ONLY:
            return CdcPosition(place=None)
        session = self._connect()
        catalogue.check_binlog(session, settings.name.schema)
        place = self._begin = catalogue.current_place(session)
        is_complete = settings.snapshot is SnapshotMode.NEVER
        return CdcPosition(place=place, until=place if settings.ends else None, is_snapshot_complete=is_complete)

    def _read_chunk(self, position: CdcPosition) -> None:
        settings, ctx = self._settings, self._ctx
        chunks = self._state.chunks()
        left = ctx.rows_left()
        limit = settings.chunk_rows if left is None else max(1, min(settings.chunk_rows, left))
        batches: list[pa.RecordBatch] = []
        has_key = bool(settings.key)

        def emit(batch: pa.RecordBatch) -> None:
            if has_key:
                batches.append(batch)
                return
            self.is_torn = True
            self._collect(batch, None)
            ctx.control()  # says that the source is alive: such a table is one chunk, however long it takes

        read = SnapshotReader(settings, self._connect()).read(chunks[-1] if chunks else None, limit, emit)
        is_complete = read.chunk.last is None
        # From here on nothing asks the database: the rows and what is known of them go together.
        for batch in batches:
            self._collect(batch, None)
        self.is_torn = False
        if settings.snapshot is not SnapshotMode.ONLY or not is_complete:
            self._state.add_chunk(read.chunk)
        horizon = read.chunk.place if is_complete else None
        self._position = msgspec.structs.replace(
            position,
            is_snapshot_complete=is_complete,
            horizon=horizon,
            # What ends ends with all rows as of one moment.
            until=horizon if position.until is not None and horizon is not None else position.until,
            snapshot_rows=position.snapshot_rows + read.rows,
        )
        self._chunks = None
        self._save()

    def _read_changes(self, position: CdcPosition, place: Place) -> bool:
        settings, ctx = self._settings, self._ctx
        reader = self._open(position, place)
        if not reader.is_done:
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
            position = msgspec.structs.replace(
                position, place=reader.place, begun=reader.begun, prepared=reader.prepared
            )
            self._position = position
        if self._chunks_to_mind() and position.horizon is not None and self._is_beyond(position):
            self._state.forget_chunks()
            self._chunks, self._seen = [], []
            reader.leave_out(None)
        self._save()
        self._send_watermark()
        return reader.is_done and not reader.has_more

    def _is_beyond(self, position: CdcPosition) -> bool:
        """Whether the stream has come to where the last chunk was read."""
        is_mariadb = self._settings.table.is_mariadb
        assert position.horizon is not None
        assert position.place is not None
        if self._horizon is None:
            self._horizon = Sight(position.horizon, is_mariadb=is_mariadb)
        return Sight(position.place, is_mariadb=is_mariadb).has_reached(self._horizon)

    def _handle(self, block: Block, reader: ChangeReader) -> None:
        if self._chunks_to_mind():
            block = block.filter(self._is_new(block, reader))
        if block.rows:
            self._collect(reader.batch(block), block.is_retract)

    def _is_new(self, block: Block, reader: ChangeReader) -> npt.NDArray[np.bool_]:
        """Which rows the snapshot does not have as they are after their change."""
        chunks = self._chunks_to_mind()

        def find(rows: npt.NDArray[np.int64], numbers: Sequence[int]) -> list[bool]:
            keys = typed_keys(reader.keys(block.take(rows)), self._settings.table.key)
            return find_behind(self._connect(), keys, [chunks[number].last or () for number in numbers])

        return find_new(block.transactions, [seen.sees for seen in self._seen], find)

    def _chunks_to_mind(self) -> Sequence[Chunk]:
        if self._chunks is None:
            self._chunks = self._state.chunks()
            is_mariadb = self._settings.table.is_mariadb
            self._seen = [
                Sight(chunk.place, is_mariadb=is_mariadb) for chunk in self._chunks if chunk.place is not None
            ]
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
        key = [column.name for column in self._settings.key]
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
            latest_us=self._event_time.latest_us,
            is_idle=self._event_time.is_idle,
            quiet_us=self._event_time.quiet_us(self._ctx.clock.now_us()),
        )
        self._state.save(self._position)

    def _connect(self) -> Session:
        """The session for queries, which is not that of the stream."""
        if self._session is None:
            self._session = self._settings.server.connect(answer_s=_ANSWER_SECONDS, raw=True)
        return self._session

    def _open(self, position: CdcPosition, place: Place) -> ChangeReader:
        if self._reader is None:
            reader = open_streams.borrow(self._stream_key(), (place, position.begun))
            self.is_stale = reader is not None
            if reader is None:
                reader = open_changes(self._settings, self._connect(), self._ctx, position, place)
            self._reader = reader
            reader.set_warn(self._ctx.warn)
            has_chunks = bool(self._chunks_to_mind())
            reader.leave_out(self._seen[0].sees if has_chunks else None)
            if not has_chunks and self._session is not None:
                self._session.close()
                self._session = None
        return self._reader

    def _stream_key(self) -> tuple[object, ...]:
        """All that a reader depends on."""
        settings = self._settings
        columns = tuple(column.name for column in settings.columns)
        task = self._ctx.task_info
        what = (settings.server, settings.name, columns, settings.inserts_only, settings.ignores_truncate)
        return (*what, task.job_id, task.operator_id, replica_number(settings, task))

    def _report(self) -> None:
        """How far the source is behind: rows, by what a row has taken of the binlog in this epoch."""
        position = self._position
        if self._reader is None or position is None or position.place is None:
            return
        lag = 0
        if self._is_behind:
            with self._settings.server.translating("cannot ask how far the binlog is"):
                lag = catalogue.bytes_behind(self._connect(), position.place)
        begin = self._begin
        moved = position.place.offset - begin.offset if begin and begin.file == position.place.file else 0
        rows = lag * self._rows // moved if moved > 0 else 0
        self._ctx.report_backlog(max(rows, 1 if position.begun else 0))
        if lag > self._settings.warn_lag_bytes:
            self._ctx.warn(
                f"{lag >> 20} MiB of the binlog are not read yet, of those that the server has: it removes them after "
                "a time, read or not",
                topic="lag of the binlog",
            )
