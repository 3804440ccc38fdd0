"""Views of expiring tables by key: all rows of a key, and the last row of a key."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from arroyo_core.api.operations import DataOperation, DeleteKey, Insert
from arroyo_core.api.views import KeyTimeState, LastKeyValueState, Matches
from arroyo_core.state.chunks import cut_chunks, take_rows
from arroyo_core.state.keys import Mask, Rows
from arroyo_core.state.messages import OperationCode, RecordBatchData
from arroyo_core.state.rows import RowFormat, operations
from arroyo_core.state.runs import Run, RunSet, is_live, later

#: A view that lives on frees memory of expired rows at every so many checkpoints.
CHECKPOINTS_TO_EVICT = 16


class KeyTimeView(KeyTimeState):
    """All rows of each key; its methods are described by `KeyTimeState`."""

    #: Only a view by time removes all rows before some time.
    expired_before_us: int | None = None

    def __init__(
        self,
        *,
        row_format: RowFormat,
        runs: list[Run],
        cutoff_us: int | None,
    ) -> None:
        self._format = row_format
        self._cutoff_us = cutoff_us
        self._checkpoints = 0
        self._runs = RunSet(row_format, self._choose)
        for run in runs:
            self._runs.restore(run)

    def insert(self, batch: pa.RecordBatch) -> None:
        self._apply(batch, Insert())

    def delete(self, operation: DataOperation, batch: pa.RecordBatch) -> None:
        self._apply(batch, operation)

    def get_batch(self, keys: pa.RecordBatch) -> pa.RecordBatch:
        return self.lookup(keys).batch

    def lookup(self, keys: pa.RecordBatch) -> Matches:
        queries, rows = self._find(keys)
        return Matches(queries, self._format.decode(rows))

    def lookup_parts(self, keys: pa.RecordBatch) -> Iterator[Matches]:
        queries, rows = self._find(keys)
        start = 0
        for part in cut_chunks(rows):
            yield Matches(queries[start : start + part.num_rows], self._format.decode(part))
            start += part.num_rows

    def _find(self, keys: pa.RecordBatch) -> tuple[Rows, pa.Table]:
        wanted = self._format.cast_keys(keys)
        hashes = self._format.hash_keys(wanted, keys.num_rows)
        queries: list[Rows] = []
        tables: list[pa.Table] = []
        by_hash = np.argsort(hashes)
        wanted, hashes = wanted.take(pa.array(by_hash)), hashes[by_hash]
        for run in self._runs.runs():
            query_rows, rows = run.find(self._format.key_columns, wanted, hashes)
            queries.append(by_hash[query_rows])
            tables.append(run.take(self._format, rows))
            keep = self._format.kept_by(tables[-1], later(run.live_from_us, self._cutoff_us))
            if keep is not None:
                queries[-1], tables[-1] = queries[-1][keep], tables[-1].filter(pa.array(keep))
        if not tables:
            return np.empty(0, dtype=np.int64), self._format.empty()
        return self._order(np.concatenate(queries), pa.concat_tables(tables))

    def get_all(self) -> pa.RecordBatch:
        return self._format.decode(self._all_rows())

    def get_all_parts(self) -> list[pa.RecordBatch]:
        return self._format.decode_parts(self._all_rows())

    def _all_rows(self) -> pa.Table:
        tables = [self._live(run) for run in self._runs.runs()]
        rows = pa.concat_tables([self._format.empty_in_memory(), *tables])
        return self._format.resolve_deletes(rows, keep_deletes=False)

    def expire(self, watermark_us: int, retention_us: int) -> None:
        self._cutoff_us = later(self._cutoff_us, watermark_us - retention_us)

    def take_changes(self, cutoff_us: int | None) -> list[RecordBatchData]:
        """All that the checkpoint has to write: it is kept once, among the rows that are looked up."""
        return [RecordBatchData(run.all_rows(self._format)) for run in self._runs.changed()]

    def handle_checkpointed(self, cutoff_us: int | None) -> None:
        """Free the memory of rows past retention; looks at every row, so not each time."""
        self._cutoff_us = later(self._cutoff_us, cutoff_us)
        self._checkpoints += 1
        self._runs.handle_checkpointed()
        if self._checkpoints % CHECKPOINTS_TO_EVICT == 0:
            self._runs.replace([Run.of_sorted(self._live(run)) for run in self._runs.runs()])

    def _apply(self, batch: pa.RecordBatch, operation: DataOperation) -> None:
        if batch.num_rows == 0:
            return
        self._runs.append(self._format.encode(batch, operation))

    def _live(self, run: Run) -> pa.Table:
        return self._format.expire(run.all_rows(self._format), later(run.live_from_us, self._cutoff_us))

    def _choose(self, rows: pa.Table, is_oldest: bool) -> Rows:
        return self._format.live_by_key_hash(rows, self._cutoff_us, keep_deletes=not is_oldest)

    def _order(self, queries: Rows, rows: pa.Table) -> tuple[Rows, pa.Table]:
        """By row of the query; runs come oldest first, so a stable sort keeps the order within a key."""
        codes = operations(rows)
        if (codes != OperationCode.INSERT).any():
            # The same delete was found once for each query row of its key: tell the copies apart by the query.
            tagged = rows.set_column(
                rows.schema.get_field_index("_key_hash"), "_key_hash", pa.array(queries.astype(np.uint64))
            )
            numbered = tagged.append_column("_row", pa.array(np.arange(rows.num_rows)))
            alive = self._format.resolve_deletes(numbered, keep_deletes=False).column("_row").to_numpy()
            queries, rows = queries[alive], take_rows(rows, alive)
        if bool((queries[:-1] <= queries[1:]).all()):
            return queries, rows
        order = np.argsort(queries, kind="stable")
        return queries[order], take_rows(rows, order)


class LastKeyValueView(LastKeyValueState):
    """The last row of each key; its methods are described by `LastKeyValueState`."""

    #: Only a view by time removes all rows before some time.
    expired_before_us: int | None = None

    def __init__(
        self,
        *,
        row_format: RowFormat,
        runs: list[Run],
        generation: int,
        cutoff_us: int | None,
    ) -> None:
        self._format = row_format
        self._generation = generation
        self._cutoff_us = cutoff_us
        self._runs = RunSet(row_format, self._choose)
        for run in runs:
            self._runs.restore(run)

    def upsert(self, batch: pa.RecordBatch) -> None:
        self._apply(batch, Insert())

    def delete(self, keys: pa.RecordBatch) -> None:
        self._apply(keys, DeleteKey())

    def get(self, keys: pa.RecordBatch) -> tuple[Mask, pa.RecordBatch]:
        rows_of, rows = self._newest(keys)
        return rows_of >= 0, self._format.decode(rows)

    def get_parts(self, keys: pa.RecordBatch) -> Iterator[tuple[Mask, pa.RecordBatch]]:
        for is_there, rows in self._newest_parts(keys):
            yield is_there, self._format.decode(rows)

    def get_aligned(self, keys: pa.RecordBatch) -> pa.RecordBatch:
        rows_of, rows = self._newest(keys)
        found = self._format.as_batch(rows.select(self._format.schema.schema.names))
        return found.take(pa.array(rows_of, mask=rows_of < 0))

    def get_aligned_parts(self, keys: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        for is_there, rows in self._newest_parts(keys):
            found = self._format.as_batch(rows.select(self._format.schema.schema.names))
            yield found.take(pa.array(np.cumsum(is_there) - 1, mask=~is_there))

    def get_all(self) -> pa.RecordBatch:
        return self._format.decode(self._all_rows())

    def get_all_parts(self) -> list[pa.RecordBatch]:
        return self._format.decode_parts(self._all_rows())

    def _all_rows(self) -> pa.Table:
        tables = []
        for run in self._runs.runs():
            live = is_live(self._format, run.rows, later(run.live_from_us, self._cutoff_us))
            tables.append(run.all_rows(self._format).append_column("_live", pa.array(live)))
        if not tables:
            return self._format.empty()
        rows = self._format.last_of_each_key(pa.concat_tables(tables), keep_deletes=False)
        return rows.filter(rows.column("_live"))

    def __len__(self) -> int:
        return int(self._all_rows().num_rows)

    def expire(self, watermark_us: int, retention_us: int) -> None:
        self._cutoff_us = later(self._cutoff_us, watermark_us - retention_us)

    def take_changes(self, cutoff_us: int | None) -> list[RecordBatchData]:
        """All that the checkpoint has to write: it is kept once, among the rows that are looked up."""
        changed = (run.all_rows(self._format) for run in self._runs.changed())
        return [RecordBatchData(self._format.for_file(rows, self._generation)) for rows in changed]

    def handle_checkpointed(self, cutoff_us: int | None) -> None:
        """Rows past retention stop to count; their memory goes when their run is merged."""
        self._cutoff_us = later(self._cutoff_us, cutoff_us)
        self._generation += 1
        self._runs.handle_checkpointed()

    def _apply(self, batch: pa.RecordBatch, operation: DataOperation) -> None:
        if batch.num_rows == 0:
            return
        self._runs.append(self._format.encode(batch, operation))

    def _newest(self, keys: pa.RecordBatch) -> tuple[Rows, pa.Table]:
        """For each row of `keys` the number of its row in the table returned with it, or -1."""
        hashes = self._format.hash_keys(cast := self._format.cast_keys(keys), keys.num_rows)
        # Sorted by hash, neighbours find neighbours: both the search and the gathering stay in the caches.
        open_rows: Rows = np.argsort(hashes)
        rows_of: Rows = np.full(keys.num_rows, -1, dtype=np.int64)
        tables: list[pa.Table] = []
        total = 0
        for run in reversed(self._runs.runs()):
            if len(open_rows) == 0:
                break
            queries, found = run.find(self._format.key_columns, cast.take(pa.array(open_rows)), hashes[open_rows])
            if len(queries) == 0:
                continue
            # Of several rows of one key in a run the last assignment, of the newest, remains.
            newest = np.full(len(open_rows), -1, dtype=np.int64)
            newest[queries] = found
            is_hit = newest >= 0
            rows, counts = self._take(run, newest[is_hit])
            numbers = np.where(counts, np.cumsum(counts) - 1 + total, -1)
            rows_of[open_rows[is_hit]] = numbers
            tables.append(rows if counts.all() else rows.filter(pa.array(counts)))
            total += tables[-1].num_rows
            open_rows = open_rows[~is_hit]
        if not tables:
            return rows_of, self._format.empty().select(self._format.schema.names)
        has_row = rows_of >= 0
        rows = take_rows(pa.concat_tables(tables), rows_of[has_row])
        rows_of[has_row] = np.arange(rows.num_rows)
        return rows_of, rows

    def _newest_parts(self, keys: pa.RecordBatch) -> Iterator[tuple[Mask, pa.Table]]:
        """Which of some of the keys have a row, and those rows, which come in the order of the keys."""
        rows_of, rows = self._newest(keys)
        is_there = rows_of >= 0
        keys_of = np.flatnonzero(is_there)
        start = done = 0
        for part in list(cut_chunks(rows)) or [rows]:
            done += part.num_rows
            end = len(rows_of) if done == rows.num_rows else int(keys_of[done])
            yield is_there[start:end], part
            start = end

    def _take(self, run: Run, found: Rows) -> tuple[pa.Table, Mask]:
        """The user's columns of rows of a run, and which of them count."""
        rows = run.take_lean(found)
        counts = is_live(self._format, rows, later(run.live_from_us, self._cutoff_us))
        if run.has_deletes:
            counts &= operations(rows) == OperationCode.INSERT
        return rows.select(self._format.schema.names), counts

    def _choose(self, rows: pa.Table, is_oldest: bool) -> Rows:
        return self._format.newest_of_each_key(rows, keep_deletes=not is_oldest)
