"""The last rows of a node, for whoever looks at a running job: a few of each epoch come back with its reports."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

import pyarrow as pa

from arroyo_core.pipeline.plan import Plan

#: Of one subtask in one epoch; fewer rows come back where they would be more.
MAX_BYTES = 1 << 20


class LatestRows:
    """Keeps the last rows that one subtask of a node gave in an epoch; of a sink, those that it was given."""

    def __init__(self, limit: int, *, is_sink: bool) -> None:
        self.is_sink = is_sink
        self._limit = limit
        self._kept: deque[pa.RecordBatch] = deque()
        self._rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        last = batch.slice(max(0, batch.num_rows - self._limit))
        # A copy: a slice would keep the whole batch in memory until the epoch ends.
        self._kept.append(last.take(pa.array(range(last.num_rows), pa.int64())))
        self._rows += last.num_rows
        while self._rows - self._kept[0].num_rows >= self._limit:
            self._rows -= self._kept.popleft().num_rows

    def encode(self) -> bytes:
        """Arrow IPC; empty where there are no rows."""
        if not self._kept:
            return b""
        rows = pa.Table.from_batches(list(self._kept))
        count = min(self._limit, rows.num_rows)
        while count:
            data = _encode(rows.slice(rows.num_rows - count))
            if len(data) <= MAX_BYTES:
                return data
            count //= 2
        return b""


def _encode(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows.combine_chunks())
    return bytes(sink.getvalue())


def decode_latest(encoded: Iterable[bytes]) -> pa.Table | None:
    """The rows of several subtasks, one behind the other; None where there are none."""
    tables = [pa.ipc.open_stream(data).read_all() for data in encoded if data]
    return pa.concat_tables(tables) if tables else None


def sinks_of(plan: Plan) -> Sequence[str]:
    """The nodes that nobody reads."""
    read = {edge.source for edge in plan.edges}
    return [name for name in plan.nodes if name not in read]
