"""`template.running_count`: how often the row's key has been seen so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from arroyo_core.api import (
    ArrowCollector,
    ArrowOperator,
    ArroyoSchema,
    DisplayableOperator,
    OperatorContext,
    UnboundedState,
)
from arroyo_core.errors import ConfigError
from arroyo_core.state import global_table_config

if TYPE_CHECKING:
    from arroyo_core.state import TableConfig

TABLE = "counts"


class RunningCount(ArrowOperator):
    """Appends an `int64` column. The counts by key are in the table `counts`."""

    def __init__(self, key: str, column: str) -> None:
        self._key = key
        self._column = column

    def name(self) -> str:
        return "template.running_count"

    def display(self) -> DisplayableOperator:
        return DisplayableOperator(self.name(), [("key", self._key), ("column", self._column)])

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        (stream,) = inputs
        if self._key not in stream.names:
            raise ConfigError(f"no column {self._key!r}", field="key", value=self._key, allowed=stream.names)
        kind = stream.schema.field(self._key).type
        if not _is_countable(kind):
            raise ConfigError(
                f"cannot count by {self._key!r}, which is {kind}",
                field="key",
                value=self._key,
                allowed=["integers", "strings", "booleans", "binary"],
            )
        if self._column in stream.names:
            raise ConfigError(f"the input already has a column {self._column!r}", field="column", value=self._column)
        return stream.with_schema(stream.schema.append(pa.field(self._column, pa.int64())))

    def routing_keys(self, inputs: Sequence[ArroyoSchema]) -> Sequence[tuple[str, ...] | None]:
        # All rows of one key must meet in one subtask, or each would count for itself.
        return [(self._key,)]

    def unbounded_state(self, inputs: Sequence[ArroyoSchema]) -> UnboundedState | None:
        return UnboundedState("it keeps a count of every key for ever", "count by a column of few values")

    def tables(self, inputs: Sequence[ArroyoSchema]) -> dict[str, TableConfig]:
        return global_table_config(TABLE, "rows seen, by key")

    def on_start(self, ctx: OperatorContext) -> None:
        self._counts = ctx.table_manager.get_global_keyed_state(TABLE)

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        encoded = pc.dictionary_encode(batch.column(self._key), null_encoding="encode")
        codes = encoded.indices.to_numpy().astype(np.int64)
        rows_of_key = np.bincount(codes, minlength=len(encoded.dictionary))
        before = np.zeros(len(rows_of_key), dtype=np.int64)
        # One turn per distinct key of the batch, not per row.
        for code, key in enumerate(encoded.dictionary.to_pylist()):
            before[code] = self._counts.get(key) or 0
            self._counts.insert(key, int(before[code] + rows_of_key[code]))
        counted = pa.array(before[codes] + _position_in_group(codes, rows_of_key) + 1, type=pa.int64())
        collector.collect(pa.RecordBatch.from_arrays([*batch.columns, counted], schema=ctx.output_schema.schema))


def _is_countable(kind: pa.DataType) -> bool:
    checks = (pa.types.is_integer, pa.types.is_string, pa.types.is_boolean, pa.types.is_binary)
    return any(check(kind) for check in checks)


def _position_in_group(codes: npt.NDArray[np.int64], rows_of_group: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """For each row the number of earlier rows with the same code."""
    order = np.argsort(codes, kind="stable")
    starts = np.cumsum(rows_of_group) - rows_of_group
    positions = np.empty(len(codes), dtype=np.int64)
    positions[order] = np.arange(len(codes)) - np.repeat(starts, rows_of_group)
    return positions
