"""`std.deduplicate`: one row of each key, the first or the last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from arroyo_core.api import (
    ArrowCollector,
    ArrowOperator,
    ArroyoSchema,
    DisplayableOperator,
    OperatorContext,
    UnboundedState,
    Watermark,
)
from arroyo_core.api.units import format_duration_us
from arroyo_core.api.updating import make_updates, refuse_updating, row_ids, with_updating
from arroyo_core.errors import ConfigError
from arroyo_core.state import ColumnRules, timestamp_table_config
from arroyo_std.aggregates.groups import Codes, Groups, Mask
from arroyo_std.columns import check_column, check_unique
from arroyo_std.large_rows import interleave
from arroyo_std.row_values import is_nested, plain_rows, plain_schema
from arroyo_std.setting_texts import names_text
from arroyo_std.windows.times import Times, times_us

if TYPE_CHECKING:
    from arroyo_core.state import TableConfig

TABLE = "k"
#: Longer than any stream, for keys that are never forgotten.
_FOREVER = timedelta(days=10_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeduplicateSettings:
    """`ttl_us` is None for keys that are never forgotten."""

    keys: tuple[str, ...]
    keeps_last: bool
    ttl_us: int | None


class Deduplicate(ArrowOperator):
    """Keeps a key's first row and drops later ones, or sends a key's last row and takes back the one before.

    The first row is the first to arrive, and within a batch the one of the least event time. The last row is the one
    of the greatest event time, and of equal ones the last to arrive. A key is forgotten when the watermark is more
    than the time to live after the event time of its row; rows older than that are late, counted and dropped.
    """

    def __init__(self, settings: DeduplicateSettings) -> None:
        self._settings = settings

    def name(self) -> str:
        return "std.deduplicate"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        stream, keys = inputs[0], self._settings.keys
        refuse_updating(stream, operator=self.name())
        for position, key in enumerate(keys):
            check_column(key, stream.names, field=f"keys[{position}]")
            if is_nested(stream.schema.field(key).type):
                raise ConfigError("lists and maps cannot be keys", field=f"keys[{position}]", value=key)
        check_unique(keys, field="keys")
        if stream.timestamp_column is None and self._settings.ttl_us is not None:
            raise ConfigError(
                "the stream has no event time, so keys cannot be forgotten: put std.watermark in front, or give ttl: 0 "
                "to keep every key for ever",
                field="ttl",
            )
        if not self._settings.keeps_last:
            return stream.with_keys(keys)
        plain = ArroyoSchema(plain_schema(stream.schema), stream.timestamp_column, keys)
        return with_updating(plain)

    def routing_keys(self, inputs: Sequence[ArroyoSchema]) -> Sequence[tuple[str, ...] | None]:
        return [self._settings.keys]

    def partial(self, inputs: Sequence[ArroyoSchema]) -> ArrowOperator | None:
        """Of first rows none: one that is late would hide one that is not."""
        return LastOfBatch(self._settings.keys) if self._settings.keeps_last else None

    def needs_watermark(self, inputs: Sequence[ArroyoSchema]) -> bool:
        return self._settings.ttl_us is not None

    def unbounded_state(self, inputs: Sequence[ArroyoSchema]) -> UnboundedState | None:
        if self._settings.ttl_us is not None:
            return None
        kept = "the last row of every key" if self._settings.keeps_last else "every key"
        return UnboundedState(f"it keeps {kept} for ever", "give a ttl other than 0")

    def tables(self, inputs: Sequence[ArroyoSchema]) -> dict[str, TableConfig]:
        ttl_us = self._settings.ttl_us
        retention = _FOREVER if ttl_us is None else timedelta(microseconds=ttl_us)
        what = "the last row of each key" if self._settings.keeps_last else "keys, with the event time of their row"
        columns = self._kept(inputs[0])
        return {TABLE: timestamp_table_config(TABLE, what, retention, True, columns, column_rules=ColumnRules())}

    def state_settings(self, inputs: Sequence[ArroyoSchema]) -> Mapping[str, str]:
        # A first row has gone on and stays, a last one is taken back.
        settings = self._settings
        return {"keys": names_text(settings.keys), "keep": "last" if settings.keeps_last else "first"}

    def display(self) -> DisplayableOperator:
        settings = self._settings
        return DisplayableOperator(
            self.name(),
            [
                ("keys", ", ".join(settings.keys)),
                ("keep", "last" if settings.keeps_last else "first"),
                ("ttl", "none" if settings.ttl_us is None else format_duration_us(settings.ttl_us)),
            ],
        )

    def lives_on(self) -> bool:
        return True

    def on_start(self, ctx: OperatorContext) -> None:
        stream = ctx.input_schemas[0]
        self._time_column = stream.timestamp_column
        self._state = self._kept(stream)
        self._view = ctx.table_manager.get_last_key_value_table(TABLE)
        self._cutoff_us: int | None = None
        watermark_us = ctx.last_present_watermark()
        if watermark_us is not None:
            self._expire(watermark_us)

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        batch, times = self._timely(batch, ctx)
        if batch.num_rows == 0:
            return
        if self._settings.keeps_last:
            self._keep_last(batch, times, ctx, collector)
        else:
            self._keep_first(batch, times, ctx, collector)

    def handle_watermark_int(
        self, watermark: Watermark, ctx: OperatorContext, collector: ArrowCollector
    ) -> Watermark | None:
        if watermark.event_time_us is not None:
            self._expire(watermark.event_time_us)
        return watermark

    def _kept(self, stream: ArroyoSchema) -> ArroyoSchema:
        """What the table has of a row."""
        columns, keys, time_column = plain_schema(stream.schema), self._settings.keys, stream.timestamp_column
        if not self._settings.keeps_last:
            names = [*keys, *([time_column] if time_column and time_column not in keys else [])]
            columns = pa.schema([columns.field(name) for name in names])
        return ArroyoSchema(columns, time_column, keys)

    def _keep_first(
        self, batch: pa.RecordBatch, times: Times | None, ctx: OperatorContext, collector: ArrowCollector
    ) -> None:
        rows = np.sort(chosen_rows(batch, self._settings.keys, times, takes_last=False))
        chosen = batch.take(pa.array(rows))
        is_known, _ = self._view.get(chosen)
        fresh = chosen if not is_known.any() else chosen.filter(pa.array(~is_known))
        if fresh.num_rows < batch.num_rows:
            ctx.count("duplicates", batch.num_rows - fresh.num_rows)
        if fresh.num_rows:
            self._view.upsert(fresh)
            collector.collect(fresh)

    def _keep_last(
        self, batch: pa.RecordBatch, times: Times | None, ctx: OperatorContext, collector: ArrowCollector
    ) -> None:
        rows = np.sort(chosen_rows(batch, self._settings.keys, times, takes_last=True))
        chosen = plain_rows(batch.take(pa.array(rows)), self._state.schema)
        start = kept = 0
        # Rows that were kept may be wider than those that come: one batch need not hold them.
        for is_known, former in self._view.get_parts(chosen):
            end = start + len(is_known)
            some_times = None if times is None else times[rows[start:end]]
            kept += self._replace(chosen.slice(start, end - start), some_times, is_known, former, collector)
            start = end
        if kept < batch.num_rows:
            ctx.count("duplicates", batch.num_rows - kept)

    def _replace(
        self,
        chosen: pa.RecordBatch,
        times: Times | None,
        is_known: Mask,
        former: pa.RecordBatch,
        collector: ArrowCollector,
    ) -> int:
        """Keep rows in the place of former ones, unless these are later; returns how many."""
        if times is not None and former.num_rows:
            is_older = np.zeros(chosen.num_rows, dtype=np.bool_)
            is_older[is_known] = times[is_known] < times_us(former.column(self._time_column))
            former = former.filter(pa.array(~is_older[is_known]))
            chosen, is_known = chosen.filter(pa.array(~is_older)), is_known[~is_older]
        if chosen.num_rows == 0:
            return 0
        self._view.upsert(chosen)
        ids = row_ids(chosen, self._settings.keys)
        appends = make_updates(chosen, is_retract=False, ids=ids)
        retracts = make_updates(former, is_retract=True, ids=ids.filter(pa.array(is_known)))
        places = np.arange(chosen.num_rows)
        for changes in interleave(retracts, appends, retract_ranks=places[is_known], append_ranks=places):
            collector.collect(changes)
        return int(chosen.num_rows)

    def _timely(self, batch: pa.RecordBatch, ctx: OperatorContext) -> tuple[pa.RecordBatch, Times | None]:
        """The rows that are not late, and their event times."""
        if self._time_column is None:
            return batch, None
        column = batch.column(self._time_column)
        if column.null_count:
            ctx.count("null_event_times", column.null_count)
            batch = batch.filter(column.is_valid())
        times = times_us(batch.column(self._time_column))
        if self._cutoff_us is not None:
            is_late = times < self._cutoff_us
            late_rows = int(is_late.sum())
            if late_rows:
                ctx.count("late_rows", late_rows)
                batch, times = batch.filter(pa.array(~is_late)), times[~is_late]
        return batch, times

    def _expire(self, watermark_us: int) -> None:
        ttl_us = self._settings.ttl_us
        if ttl_us is not None:
            self._cutoff_us = watermark_us - ttl_us
            self._view.expire(watermark_us, ttl_us)


class LastOfBatch(ArrowOperator):
    """Before the shuffle: drops rows of a batch that have a later one of their key in it."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        self._keys = keys

    def name(self) -> str:
        return "std.deduplicate"

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        return inputs[0]

    def lives_on(self) -> bool:
        return True

    def on_start(self, ctx: OperatorContext) -> None:
        self._time_column = ctx.input_schemas[0].timestamp_column

    def process_batch(self, batch: pa.RecordBatch, ctx: OperatorContext, collector: ArrowCollector) -> None:
        times = None
        if self._time_column is not None:
            column = batch.column(self._time_column)
            if column.null_count:
                # Whoever counts rows without a time counts them all.
                collector.collect(batch)
                return
            times = times_us(column)
        rows = np.sort(chosen_rows(batch, self._keys, times, takes_last=True))
        if len(rows) < batch.num_rows:
            ctx.count("duplicates", batch.num_rows - len(rows))
            batch = batch.take(pa.array(rows))
        collector.collect(batch)


def chosen_rows(batch: pa.RecordBatch, keys: Sequence[str], times: Times | None, *, takes_last: bool) -> Codes:
    """The row of each key that counts, by event time, then by arrival."""
    groups = Groups.of_columns([batch.column(key) for key in keys], batch.num_rows)
    if groups.count == batch.num_rows:
        return np.arange(batch.num_rows)
    order = np.arange(batch.num_rows) if times is None else np.argsort(times, kind="stable")
    rows = np.empty(groups.count, dtype=np.int64)
    # Of several assignments to one place the last remains.
    order = order if takes_last else order[::-1]
    rows[groups.codes[order]] = order
    return rows
