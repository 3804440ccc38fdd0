"""Files whose rows are sorted: they are written when the file ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from arroyo_formats import FileWriter

from arroyo_core.errors import ConfigError

#: Rows of a batch that a writer is given.
BATCH_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class SortKey:
    """A column, and in which direction."""

    column: str
    is_descending: bool = False

    @classmethod
    def read(cls, written: str) -> SortKey:
        """As a config has it: `column`, or `-column` from the greatest."""
        return cls(written[1:], is_descending=True) if written.startswith("-") else cls(written)


def check_sort_by(schema: pa.Schema, keys: Sequence[SortKey]) -> None:
    """Raise `ConfigError` for a column that the files do not have or that has no order."""
    for index, key in enumerate(keys):
        field = f"sort_by[{index}]"
        if key.column not in schema.names:
            raise ConfigError(
                f"files have no column {key.column!r}", field=field, value=key.column, allowed=schema.names
            )
        kind = schema.field(key.column).type
        try:
            pc.sort_indices(pa.nulls(0, kind))
        except (pa.ArrowNotImplementedError, pa.ArrowTypeError):
            raise ConfigError(
                f"column {key.column!r} is {kind}: its values have no order", field=field, value=key.column
            ) from None


class SortedWriter(FileWriter):
    """Keeps all rows, and hands them to another writer in order; rows with equal keys stay as they came."""

    def __init__(self, writer: FileWriter, keys: Sequence[SortKey]) -> None:
        self._writer = writer
        self._keys = [(key.column, "descending" if key.is_descending else "ascending") for key in keys]
        self._batches: list[pa.RecordBatch] = []
        self._bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)
        # Not of the whole buffers: a batch may be a slice.
        self._bytes += batch.nbytes

    def close(self) -> None:
        if self._batches:
            rows = pa.Table.from_batches(self._batches)
            self._batches.clear()
            self._bytes = 0
            order = pc.sort_indices(rows, sort_keys=self._keys)
            for batch in rows.take(order).combine_chunks().to_batches(max_chunksize=BATCH_ROWS):
                self._writer.write(batch)
        self._writer.close()

    def buffered_bytes(self) -> int:
        return self._bytes
