"""`std.join`: joins all rows of two streams that come within a time to live; results may be taken back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from arroyo_core.api import ArrowCollector, ArroyoSchema, OperatorContext, UnboundedState
from arroyo_core.api.hashing import is_hashable
from arroyo_core.api.units import format_duration_us
from arroyo_core.api.updating import make_updates, retract_mask, row_ids, with_updating
from arroyo_std.aggregates.groups import Codes
from arroyo_std.joins.keyed import DistinctKeys, Found, KeyedTable, Rewrite
from arroyo_std.joins.layout import LEFT, RIGHT, SIDE_NAMES, JoinLayout, JoinSettings, JoinType, Mask, Rows, Side
from arroyo_std.joins.net_change import derive_net_change
from arroyo_std.joins.pairs import pairs_at_once
from arroyo_std.joins.timed import TimedJoin
from arroyo_std.large_rows import concat, join_rows
from arroyo_std.row_values import group_rows
from arroyo_std.windows.times import TIME_TYPE, Times, time_array
from arroyo_std.windows.windowed import UNLIMITED

#: In the table of a side whose rows come out without a match: whether the row did, and has not been taken back.
PADDED = "_padded"

_UNLIMITED_US = UNLIMITED // UNLIMITED.resolution


class HistoryJoin(TimedJoin):
    """Every row meets all rows of its key on the other side, those that came before it and those that come after.

    As rows match by nothing but their key, a row has a match exactly if the other side has its key.
    """

    def __init__(self, settings: JoinSettings, *, ttl_us: int | None, time_column: str) -> None:
        super().__init__(settings)
        self._ttl_us = _UNLIMITED_US if ttl_us is None else ttl_us
        self._time_name = time_column
        self._keeps = settings.type.keeps

    def name(self) -> str:
        return "std.join"

    def display_join(self) -> list[tuple[str, str]]:
        return [("ttl", "none" if self._ttl_us == _UNLIMITED_US else format_duration_us(self._ttl_us))]

    def stored_settings(self, inputs: Sequence[ArroyoSchema]) -> dict[str, str]:
        # The columns of the tables tell the type, and a time to live may change.
        return {}

    def make_layout(self, inputs: Sequence[ArroyoSchema]) -> JoinLayout:
        has_time = all(stream.timestamp_column is not None for stream in inputs)
        added = [pa.field(self._time_name, TIME_TYPE)] if has_time else []
        return JoinLayout(self.settings, inputs, added=added, added_field="time_column")

    def output_time(self, layout: JoinLayout) -> str | None:
        return self._time_name if _has_time(layout) else None

    def output_schema(self, inputs: Sequence[ArroyoSchema]) -> ArroyoSchema:
        stream = super().output_schema(inputs)
        return with_updating(stream) if self._is_updating(self.make_layout(inputs)) else stream

    def needs_watermark(self, inputs: Sequence[ArroyoSchema]) -> bool:
        return self.unbounded_state(inputs) is None

    def unbounded_state(self, inputs: Sequence[ArroyoSchema]) -> UnboundedState | None:
        if self._ttl_us == _UNLIMITED_US:
            return UnboundedState("it keeps all rows of both inputs for ever", "give a ttl other than 0")
        timeless = [name for name, stream in zip(SIDE_NAMES, inputs, strict=True) if stream.timestamp_column is None]
        if not timeless:
            return None
        return UnboundedState(
            f"its {' and its '.join(timeless)} input has no event time, so that rows of it are kept for ever",
            "put std.watermark in front",
        )

    def retentions_us(self) -> tuple[int, int]:
        return (self._ttl_us, self._ttl_us)

    def last_times_us(self, index: int, times: Times) -> Times:
        return times + self._ttl_us

    def table_schema(self, side: Side) -> ArroyoSchema:
        kept = super().table_schema(side)
        if not self._keeps[SIDE_NAMES.index(side.name)]:
            return kept
        return ArroyoSchema(side.schema.append(pa.field(PADDED, pa.bool_())), kept.timestamp_column, kept.key_columns)

    def own_columns(self) -> tuple[str, ...]:
        return (PADDED,)

    def open(self, layout: JoinLayout, ctx: OperatorContext) -> None:
        self._tables = [KeyedTable(side, ctx) for side in layout.sides]
        self._sends_updates = self._is_updating(layout)
        self._id_columns = [field.name for field in layout.schema if is_hashable(field.type)]

    def fire(self, watermark_us: int, collector: ArrowCollector) -> int:
        for table in self._tables:
            table.expire(watermark_us, self._ttl_us)
        return watermark_us

    def add(
        self, index: int, batch: pa.RecordBatch, times: Times, ctx: OperatorContext, collector: ArrowCollector
    ) -> None:
        side = self.layout.sides[index]
        rows, is_retract, alone, is_alone_retract = side.split_null_keys(side.plain(batch), retract_mask(batch))
        if alone is not None and self._keeps[index]:
            self._send(self._padded(index, alone), is_alone_retract, collector)
        if rows.num_rows == 0:
            return
        keys = DistinctKeys.of_rows([rows.column(name) for name in side.keys], rows.num_rows)
        if is_retract.any():
            self._add_and_retract(index, keys, rows, is_retract, ctx, collector)
        else:
            self._meet(index, keys, added=rows, added_codes=keys.codes, collector=collector)

    def _add_and_retract(
        self,
        index: int,
        keys: DistinctKeys,
        rows: pa.RecordBatch,
        is_retract: Mask,
        ctx: OperatorContext,
        collector: ArrowCollector,
    ) -> None:
        names = self.layout.sides[index].schema.names
        # What the side has of a key may be more than one batch can hold.
        parts = self._tables[index].find_parts(keys)
        everything = join_rows([rows, *(found.batch.select(names) for found in parts)])
        codes = group_rows(everything.columns, everything.num_rows).codes
        net = derive_net_change(codes[: rows.num_rows], is_retract, codes[rows.num_rows :])
        if net.unknown:
            ctx.count("unknown_retractions", net.unknown)
        is_removed = np.zeros(everything.num_rows - rows.num_rows, dtype=np.bool_)
        is_removed[net.removed] = True
        masks = np.split(is_removed, np.cumsum([len(found.codes) for found in parts])[:-1]) if parts else []
        changes = [
            Rewrite(found=found, is_changed=mask, is_kept=~mask, after=found.batch)
            for found, mask in zip(parts, masks, strict=True)
        ]
        if is_removed.any():
            self._tables[index].rewrite(changes)
        stored_codes = np.concatenate([np.empty(0, np.int64), *(found.codes for found in parts)])
        self._meet(
            index,
            keys,
            added=rows.take(pa.array(net.added)),
            added_codes=keys.codes[net.added],
            # No more than came to be taken back.
            removed=concat([change.found.batch.filter(pa.array(change.is_changed)) for change in changes])
            if is_removed.any()
            else None,
            removed_codes=stored_codes[is_removed],
            left_over=np.bincount(stored_codes[~is_removed], minlength=keys.count),
            collector=collector,
        )

    def _meet(
        self,
        index: int,
        keys: DistinctKeys,
        *,
        added: pa.RecordBatch,
        added_codes: Codes,
        removed: pa.RecordBatch | None = None,
        removed_codes: Codes | None = None,
        left_over: Rows | None = None,
        collector: ArrowCollector,
    ) -> None:
        """Send what rows that come and go mean together with the other side, and keep the rows that come.

        `left_over` is how many rows of each key the side has without those that come.
        """
        other = 1 - index
        # What the other side has of a key may be more than one batch can hold.
        parts = self._tables[other].find_parts(keys)
        is_new = np.bincount(added_codes, minlength=keys.count) > 0
        if removed is not None and removed_codes is not None:
            self._send_pairs(index, removed, removed_codes, parts, True, collector)
            if self._keeps[index]:
                self._send(self._padded(index, removed.filter(removed.column(PADDED))), True, collector)
        if self._keeps[other]:
            for found in parts:
                is_answered = _is_padded(found) & is_new[found.codes]
                self._send(self._padded(other, found.batch.filter(pa.array(is_answered))), True, collector)
        self._send_pairs(index, added, added_codes, parts, False, collector)
        if self._keeps[index]:
            matches = sum((found.counts() for found in parts), np.zeros(keys.count, dtype=np.int64))
            is_alone = matches[added_codes] == 0
            self._send(self._padded(index, added.filter(pa.array(is_alone))), False, collector)
            added = added.append_column(PADDED, pa.array(is_alone))
        self._tables[index].insert(added)
        if self._keeps[other]:
            is_bare = np.zeros(keys.count, dtype=np.bool_) if left_over is None else ~is_new & (left_over == 0)
            self._flip(other, parts, is_new, is_bare, collector)

    def _flip(self, index: int, parts: Sequence[Found], is_new: Mask, is_bare: Mask, collector: ArrowCollector) -> None:
        """Note which rows are without a match now: those of bare keys, no longer those of new ones."""
        changes = []
        for found in parts:
            is_padded = _is_padded(found)
            is_left = ~is_padded & is_bare[found.codes]
            self._send(self._padded(index, found.batch.filter(pa.array(is_left))), False, collector)
            is_changed = is_left | (is_padded & is_new[found.codes])
            place = found.batch.schema.get_field_index(PADDED)
            after = found.batch.set_column(place, PADDED, pa.array(is_padded ^ is_changed))
            everything = np.ones(len(is_changed), dtype=np.bool_)
            changes.append(Rewrite(found=found, is_changed=is_changed, is_kept=everything, after=after))
        if any(change.is_changed.any() for change in changes):
            self._tables[index].rewrite(changes)

    def _send_pairs(
        self,
        index: int,
        rows: pa.RecordBatch,
        codes: Codes,
        parts: Sequence[Found],
        is_retract: bool,
        collector: ArrowCollector,
    ) -> None:
        for found in parts:
            for pairs in self._matched(index, rows, codes, found):
                self._send(pairs, is_retract, collector)

    def _matched(self, index: int, rows: pa.RecordBatch, codes: Codes, found: Found) -> Iterator[pa.RecordBatch]:
        times = self._tables[index].times(rows)
        for mine, theirs in found.ranges(codes).chunks(pairs_at_once(rows, found.batch)):
            added = [time_array(np.maximum(times[mine], found.times[theirs]))] if _has_time(self.layout) else []
            if index == LEFT:
                yield from self.layout.matched(rows, mine, found.batch, theirs, added)
            else:
                yield from self.layout.matched(found.batch, theirs, rows, mine, added)

    def _padded(self, index: int, rows: pa.RecordBatch) -> pa.RecordBatch:
        times = [time_array(self._tables[index].times(rows))] if _has_time(self.layout) else []
        return self.layout.padded(index, rows, times)

    def _send(self, rows: pa.RecordBatch, is_retract: bool | Mask, collector: ArrowCollector) -> None:
        if rows.num_rows == 0:
            return
        if self._sends_updates:
            rows = make_updates(rows, is_retract=is_retract, ids=row_ids(rows, self._id_columns))
        collector.collect(rows)

    def _is_updating(self, layout: JoinLayout) -> bool:
        return self.settings.type is not JoinType.INNER or any(side.is_updating for side in layout.sides)


def _has_time(layout: JoinLayout) -> bool:
    return layout.sides[LEFT].time_column is not None and layout.sides[RIGHT].time_column is not None


def _is_padded(found: Found) -> Mask:
    mask: Mask = found.batch.column(PADDED).to_numpy(zero_copy_only=False)
    return mask
