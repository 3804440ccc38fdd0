"""`std.unnest`: one row per element of a list, or one column per field of a struct."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.api import ArrowCollector, ArrowOperator, ArroyoSchema, DisplayableOperator, OperatorContext
from arroyo_core.errors import ConfigError
from arroyo_std.columns import check_column, derive_stream, nearest
from arroyo_std.large_rows import take_batches

#: Output batches are cut near this size, however long the lists are; one row's list is cut only where rows are wide.
MAX_BATCH_ROWS = 65_536


class Unnest(ArrowOperator):
    """Puts elements or fields in the place of their column; the other columns are repeated or stay."""

    def __init__(self, column: str, *, alias: str | None, is_outer: bool, ordinality: str | None) -> None:
        self._column = column
        self._alias = alias
        self._is_outer = is_outer
        self._ordinality = ordinality

    def name(self) -> str:
        return "std.unnest"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        stream = inputs[0]
        check_column(self._column, stream.names, field="column")
        found = stream.schema.field(self._column).type
        if pa.types.is_struct(found):
            new_fields = self._struct_fields(found)
        elif _is_list(found):
            new_fields = self._list_fields(found)
        else:
            nested = [each.name for each in stream.schema if pa.types.is_struct(each.type) or _is_list(each.type)]
            raise ConfigError(
                f"column {self._column!r} is {found}, neither a list nor a struct",
                field="column",
                value=self._column,
                allowed=nested,
                suggestion=nearest(self._column, nested),
            )
        return self._stream_with(stream, new_fields)

    def display(self) -> DisplayableOperator:
        rows = [("column", self._column), ("as", self._alias), ("ordinality", self._ordinality)]
        fields = [(label, value) for label, value in rows if value]
        return DisplayableOperator(self.name(), [*fields, *([("outer", "true")] if self._is_outer else [])])

    def lives_on(self) -> bool:
        return True

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        schema = ctx.output_schema.schema
        if pa.types.is_struct(batch.schema.field(self._column).type):
            collector.collect(self._unnest_struct(batch, schema))
            return
        for part in self._slices(batch):
            for rows in self._unnest_list(part, schema):
                collector.collect(rows)

    def _struct_fields(self, found: pa.DataType) -> list[pa.Field]:
        if self._is_outer:
            raise ConfigError(f"'outer' is for lists; column {self._column!r} is a struct", field="outer", value=True)
        if self._ordinality:
            raise ConfigError(
                f"'ordinality' is for lists; column {self._column!r} is a struct",
                field="ordinality",
                value=self._ordinality,
            )
        # A struct that is null has null fields, so all of them are nullable.
        return [pa.field(f"{self._alias or ''}{each.name}", each.type) for each in found]

    def _list_fields(self, found: pa.DataType) -> list[pa.Field]:
        ordinality = [pa.field(self._ordinality, pa.int64())] if self._ordinality else []
        return [pa.field(self._alias or self._column, found.value_type), *ordinality]

    def _stream_with(self, stream: ArroyoSchema, new_fields: list[pa.Field]) -> ArroyoSchema:
        others = [name for name in stream.names if name != self._column]
        taken = set(others)
        for new in new_fields:
            if new.name in taken:
                field = "ordinality" if new.name == self._ordinality else "as"
                raise ConfigError(f"there is a column {new.name!r} already", field=field, value=new.name)
            taken.add(new.name)
        position = stream.names.index(self._column)
        fields = [*stream.schema]
        fields[position : position + 1] = new_fields
        return derive_stream(stream, pa.schema(fields), {name: name for name in others})

    def _unnest_struct(self, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        position = batch.schema.names.index(self._column)
        columns = list(batch.columns)
        # flatten() carries a null struct into its fields.
        columns[position : position + 1] = columns[position].flatten()
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _slices(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Runs of rows that unnest to about `MAX_BATCH_ROWS` rows each."""
        ends = np.cumsum(self._counts(_lengths(batch.column(self._column))))
        start = 0
        while start < batch.num_rows:
            done = ends[start - 1] if start else 0
            stop = max(int(np.searchsorted(ends, done + MAX_BATCH_ROWS, side="right")), start + 1)
            yield batch.slice(start, stop - start)
            start = stop

    def _counts(self, lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """How many rows each list becomes."""
        return np.maximum(lengths, 1) if self._is_outer else lengths

    def _unnest_list(self, batch: pa.RecordBatch, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """One batch; several where the other columns are so wide that it would be large."""
        lists = batch.column(self._column)
        lengths = _lengths(lists)
        counts = self._counts(lengths)
        rows = np.repeat(np.arange(batch.num_rows), counts)
        places = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        # The one row of an empty list under `outer` stands for no element.
        has_no_element = np.repeat(lengths == 0, counts)
        elements = pc.list_flatten(lists)
        if has_no_element.any():
            positions = np.repeat(np.cumsum(lengths) - lengths, counts) + places
            elements = elements.take(pa.array(positions, mask=has_no_element))
        new_columns = [elements]
        if self._ordinality:
            new_columns.append(pa.array(places + 1, pa.int64(), mask=has_no_element))
        position = batch.schema.names.index(self._column)
        if batch.num_columns == 1:
            yield pa.RecordBatch.from_arrays(new_columns, schema=schema)
            return
        done = 0
        for part in take_batches(batch.drop_columns([self._column]), rows):
            own = [column.slice(done, part.num_rows) for column in new_columns]
            done += part.num_rows
            taken = part.columns
            yield pa.RecordBatch.from_arrays([*taken[:position], *own, *taken[position:]], schema=schema)


def _is_list(data_type: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(data_type) or pa.types.is_large_list(data_type) or pa.types.is_fixed_size_list(data_type)
    )


def _lengths(lists: pa.Array) -> npt.NDArray[np.int64]:
    """The number of elements of each list; null has none."""
    lengths: npt.NDArray[np.int64] = pc.fill_null(pc.list_value_length(lists), 0).cast(pa.int64()).to_numpy()
    return lengths
