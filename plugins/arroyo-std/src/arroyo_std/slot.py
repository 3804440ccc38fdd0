"""`BatchSlot`: a table of DataFusion whose rows are exchanged between two executions of one plan.

Planning a query again for every batch costs 0.5 ms for one expression and 4 ms for twenty; executing a
plan that was made once costs 0.4 to 0.6 ms. DataFusion's Python API has no physical plan over exchangeable
data but this: its scan of a `pyarrow.dataset.Dataset` asks the dataset for its batches at every execution,
through Python methods, so a dataset may answer with another batch each time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.dataset

from arroyo_core.state import one_chunk
from arroyo_std.large_rows import Rows
from arroyo_std.nested import has_struct, nullable_type, spread_nulls


class _Scanner:
    """What DataFusion reads from: the schema it will see, then the batches."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch

    @property
    def projected_schema(self) -> pa.Schema:
        return self._batch.schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        return iter([self._batch])


class _Fragment:
    """The slot's only fragment."""

    def __init__(self, slot: BatchSlot) -> None:
        self._slot = slot

    def scanner(self, schema: pa.Schema, columns: Sequence[str] | None = None, **_options: object) -> _Scanner:
        """Called at every execution; `columns` are those the plan reads."""
        return _Scanner(self._slot.read(self._slot.schema.names if columns is None else columns))


class BatchSlot(pa.dataset.InMemoryDataset):  # type: ignore[misc]
    """A dataset of one batch: what `batch` holds when a plan over it is executed.

    A table may be there instead, with columns that no batch can hold, if the types of the schema can (64-bit offsets).

    To SQL every column, and every field in it, is nullable: nobody checks that a column that claims to have
    no nulls has none, and the optimizer would believe it.
    Not for plans with filters: DataFusion would push them into the scan, which ignores them.
    """

    def __init__(self, schema: pa.Schema) -> None:
        fields = [pa.field(field.name, nullable_type(field.type)) for field in schema]
        super().__init__(pa.schema(fields).empty_table())
        self.batch: Rows = empty_batch(schema)

    def read(self, columns: Sequence[str]) -> pa.RecordBatch:
        """These columns of the batch, as SQL may see them."""
        if not columns:
            # Only so does the number of rows survive.
            return self.batch.select([])
        fields = [self.schema.field(name) for name in columns]
        arrays = [
            spread_nulls(array) if has_struct(array.type) or array.type != field.type else array
            for array, field in zip(map(self._column, columns), fields, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def _column(self, name: str) -> pa.Array:
        column = self.batch.column(name)
        if not isinstance(column, pa.ChunkedArray):
            return column
        array = one_chunk(column)
        kind = self.schema.field(name).type
        return array if array.type == kind else array.cast(kind)

    def get_fragments(self, filter: object = None) -> Iterator[_Fragment]:
        """Called when a plan is made."""
        return iter([_Fragment(self)])


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """A batch without rows."""
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)
