"""`chaos.tally`: tumbling windows and running values by key, in every kind of state table.

What it keeps and emits depends on its rows only, not on their order, on epochs or on the parallelism: so a run
that was disturbed can be compared with an answer worked out from the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf import struct_pb2

from arroyo_core.api import (
    ArrowCollector,
    ArrowOperator,
    ArroyoSchema,
    ConstructedOperator,
    OperatorConstructor,
    OperatorContext,
    Registry,
    Watermark,
)
from arroyo_core.errors import ConfigError
from arroyo_core.state import global_table_config, timestamp_table_config

if TYPE_CHECKING:
    from arroyo_core.proto.state_pb2 import TableConfig

TIMESTAMP = pa.timestamp("us", tz="UTC")
INPUT = pa.schema({"key": pa.int64(), "amount": pa.int64(), "moment": TIMESTAMP})
WINDOWS = ArroyoSchema(
    pa.schema(
        {
            "key": pa.int64(),
            "stream": pa.int64(),
            "moment": TIMESTAMP,
            "count": pa.int64(),
            "total": pa.int64(),
            "greatest": pa.int64(),
        }
    ),
    "moment",
    ("key",),
)
GREATEST = ArroyoSchema(pa.schema({"key": pa.int64(), "moment": TIMESTAMP, "greatest": pa.int64()}), "moment", ("key",))

#: Longer than to the end of time, whose watermark comes last: what is kept by key must still be there then.
FOREVER = timedelta(days=366 * 10_000)


class Tally(ArrowOperator):
    """Counts, adds and compares amounts, by key, stream and window; emits a window when the watermark has passed it.

    Tables: `windows` holds the open ones, `greatest` the latest time and the greatest amount of each key,
    `totals` for each key the rows and the sum of all amounts so far.
    """

    def __init__(self, window_us: int) -> None:
        self._window_us = window_us

    def name(self) -> str:
        return "chaos.tally"

    def input_count(self) -> tuple[int, int | None]:
        return (1, None)

    def routing_keys(self, inputs: Sequence[ArroyoSchema]) -> Sequence[tuple[str, ...] | None]:
        return [("key",)] * len(inputs)

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        for stream in inputs:
            if stream.names != INPUT.names or stream.schema.types != INPUT.types:
                raise ConfigError(f"chaos.tally takes {INPUT.to_string()}, not {stream.schema.to_string()}")
        return WINDOWS

    def tables(self, inputs: Sequence[ArroyoSchema]) -> dict[str, TableConfig]:
        retention = timedelta(microseconds=self._window_us)
        return {
            "windows": timestamp_table_config("windows", "open windows, in parts", retention, False, WINDOWS),
            "greatest": timestamp_table_config("greatest", "the greatest amounts", FOREVER, True, GREATEST),
            **global_table_config("totals", "rows and sum of amounts, by key"),
        }

    def on_start(self, ctx: OperatorContext) -> None:
        manager = ctx.table_manager
        self._windows = manager.get_expiring_time_key_table("windows", ctx.watermark())
        self._greatest = manager.get_last_key_value_table("greatest")
        self._totals = manager.get_global_keyed_state("totals", key_type=int, value_type=tuple[int, int])

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        self.process_batch_index(0, 1, batch, ctx, collector)

    def process_batch_index(
        self, index: int, total_inputs: int, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector
    ) -> None:
        times = batch.column("moment").cast(pa.int64()).to_numpy()
        starts = pa.array(times - times % self._window_us).cast(TIMESTAMP)
        rows = pa.table(
            {
                "key": batch.column("key"),
                "stream": pa.array(np.full(batch.num_rows, index)),
                "moment": starts,
                "count": pa.array(np.ones(batch.num_rows, dtype=np.int64)),
                "total": batch.column("amount"),
                "greatest": batch.column("amount"),
            }
        )
        self._windows.insert_batch(_one_batch(merge_windows(rows), WINDOWS.schema))
        self._add_to_totals(batch)
        self._raise_greatest(batch)

    def handle_watermark_int(
        self, watermark: Watermark, ctx: OperatorContext, collector: ArrowCollector
    ) -> Watermark | None:
        if watermark.event_time_us is not None:
            # A window ends before its last microsecond plus one.
            closed = self._windows.expire_before(watermark.event_time_us - self._window_us + 1)
            parts = [part for _, batches in closed for part in batches]
            if parts:
                collector.collect(_one_batch(merge_windows(pa.Table.from_batches(parts)), WINDOWS.schema))
        return watermark

    def _add_to_totals(self, batch: pa.RecordBatch) -> None:
        sums = pa.table({"key": batch.column("key"), "amount": batch.column("amount")}).group_by("key")
        for row in sums.aggregate([("amount", "count"), ("amount", "sum")]).to_pylist():
            count, total = self._totals.get(row["key"]) or (0, 0)
            self._totals.insert(row["key"], (count + row["amount_count"], total + row["amount_sum"]))

    def _raise_greatest(self, batch: pa.RecordBatch) -> None:
        renamed = pa.table(
            [batch.column("key"), batch.column("moment"), batch.column("amount")], schema=GREATEST.schema
        )
        new = _one_batch(_greatest_of(renamed), GREATEST.schema)
        _, old = self._greatest.get(new)
        self._greatest.upsert(_one_batch(_greatest_of(pa.Table.from_batches([old, new])), GREATEST.schema))


def merge_windows(parts: pa.Table) -> pa.Table:
    """One row for each key, stream and window."""
    merged = parts.group_by(["key", "stream", "moment"]).aggregate(
        [("count", "sum"), ("total", "sum"), ("greatest", "max")]
    )
    return merged.rename_columns(["key", "stream", "moment", "count", "total", "greatest"])


def _greatest_of(rows: pa.Table) -> pa.Table:
    merged = rows.group_by("key").aggregate([("moment", "max"), ("greatest", "max")])
    return merged.rename_columns(["key", "moment", "greatest"])


def _one_batch(rows: pa.Table, schema: pa.Schema) -> pa.RecordBatch:
    columns = [pc.cast(rows.column(field.name), field.type).combine_chunks() for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


class TallyConstructor(OperatorConstructor[struct_pb2.Struct]):
    """Config: `window_ms`, the length of a window."""

    config_type = struct_pb2.Struct

    def with_config(self, config: struct_pb2.Struct, registry: Registry) -> ConstructedOperator:
        window_ms = config.fields["window_ms"].number_value
        if window_ms < 1:
            raise ConfigError("window_ms must be at least 1", field="window_ms", value=window_ms)
        return ConstructedOperator.from_operator(Tally(int(window_ms) * 1000))
