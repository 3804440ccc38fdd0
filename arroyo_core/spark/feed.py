"""The rows of DataFrames in a task of the first wave, each for its source."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from arroyo_core.api import GivenPosition, GivenRows
from arroyo_core.runtime.frames import Frame

#: Columns in front of those of the inputs: where a row goes to, and of which input it is.
LEADING = 2
#: The input of rows that only see to it that each partition has one.
NO_INPUT = -1


@dataclass(frozen=True, slots=True)
class InputColumns:
    """Where the columns of an input are in the batches, and what they are to be."""

    node_id: str
    first: int
    schema: pa.Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenInputs:
    """What the tasks of the first wave are told of the rows that come with the run."""

    columns: Sequence[InputColumns] = ()
    #: Sources that have read all that there is for them.
    ended: Sequence[str] = ()
    positions: Mapping[str, GivenPosition] = field(default_factory=dict)


class Feed:
    """Takes the batches that Spark sends apart. Each source reads its own in a thread of its own.

    Nothing is kept: a source that has no rows at the front waits until those of the others are taken. The rows of one
    that has stopped reading are dropped.
    """

    def __init__(self, batches: Iterator[pa.RecordBatch], inputs: GivenInputs) -> None:
        self._batches = batches
        self._inputs = inputs
        #: What was read and not taken: pieces with the number of their input.
        self._pieces: deque[tuple[int, pa.RecordBatch]] = deque()
        self._changed = threading.Condition()
        self._closed: set[int] = set()
        self._is_done = False

    def given(self) -> dict[str, GivenRows]:
        """The rows of each source."""
        positions = self._inputs.positions
        ended = {name: GivenRows(_no_rows(), GivenPosition()) for name in self._inputs.ended}
        return ended | {
            item.node_id: GivenRows(self._rows(number), positions.get(item.node_id, GivenPosition()))
            for number, item in enumerate(self._inputs.columns)
        }

    def rest(self) -> Iterator[Frame]:
        """No frames: reads what nobody has read, once the sources have ended."""
        for _ in self._batches:
            pass
        yield from ()

    def _rows(self, number: int) -> Generator[pa.RecordBatch, None, None]:
        try:
            while (batch := self._next(number)) is not None:
                yield batch
        finally:
            with self._changed:
                self._closed.add(number)
                self._changed.notify_all()

    def _next(self, number: int) -> pa.RecordBatch | None:
        with self._changed:
            while True:
                while self._pieces and self._pieces[0][0] in self._closed:
                    self._pieces.popleft()
                if self._pieces:
                    if self._pieces[0][0] == number:
                        taken = self._pieces.popleft()[1]
                        self._changed.notify_all()
                        return taken
                    self._changed.wait()
                elif self._is_done:
                    return None
                else:
                    self._read()

    def _read(self) -> None:
        """Whoever comes first reads; the others could not go on without it."""
        batch = next(self._batches, None)
        if batch is None:
            self._is_done = True
        else:
            self._pieces.extend(self._split(batch))
        self._changed.notify_all()

    def _split(self, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        numbers = batch.column(1).to_numpy(zero_copy_only=False)
        for number in np.unique(numbers).tolist():
            if number == NO_INPUT:
                continue
            item = self._inputs.columns[number]
            part = batch.select(range(item.first, item.first + len(item.schema)))
            mask = numbers == number
            yield number, as_declared(part if mask.all() else part.filter(pa.array(mask)), item.schema)


def as_declared(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Rows as Spark sends them, with the types that were compared before: times in UTC, and no large types."""
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _no_rows() -> Generator[pa.RecordBatch, None, None]:
    yield from ()
