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

    Without a condition rows match by nothing but their key: a row has a match exactly if the other side has its key.
    """

    def __init__(self, settings: JoinSettings, *, ttl_us: int | None, time_column: str) -> None:
        super().__init__(settings)
        self._ttl_us = _UNLIMITED_US if ttl_us is None else ttl_us
        self._time_name = time_column
        self._keeps = settings.type.keeps
        #: Of each side, whether it is noted which rows are without a match.
        self._asks = settings.type.asks
        self._is_semi = settings.type is JoinType.SEMI

    def name(self) -> str:
        return "std.join"

    def display_join(self) -> list[tuple[str, str]]:
        return [("ttl", "none" if self._ttl_us == _UNLIMITED_US else format_duration_us(self._ttl_us))]

    def stored_settings(self, inputs: Sequence[ArroyoSchema]) -> dict[str, str]:
        # The columns of the tables tell who is noted to have a match, and a time to live may change.
        sent = f"{self.settings.type} rows" if self.settings.type.is_filter else "pairs"
        return {"sends": sent, **self.condition_setting()}

    def make_layout(self, inputs: Sequence[ArroyoSchema]) -> JoinLayout:
        has_time = all(stream.timestamp_column is not None for stream in inputs)
        added = [pa.field(self._time_name, TIME_TYPE)] if has_time and not self.settings.type.is_filter else []
        return JoinLayout(self.settings, inputs, added=added, added_field="time_column")

    def output_time(self, layout: JoinLayout) -> str | None:
        # A row of a semi or anti join may come long after its time.
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
        if not self._asks[SIDE_NAMES.index(side.name)]:
            return kept
        return ArroyoSchema(side.schema.append(pa.field(PADDED, pa.bool_())), kept.timestamp_column, kept.key_columns)

    def own_columns(self) -> tuple[str, ...]:
        return (PADDED,)

    def open(self, layout: JoinLayout, ctx: OperatorContext) -> None:
        self._tables = [KeyedTable(side, ctx) for side in layout.sides]
        self._adds_time = _has_time(layout)
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
            left_over=[(change.found, change.is_kept) for change in changes],
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
        left_over: Sequence[tuple[Found, Mask]] | None = None,
        collector: ArrowCollector,
    ) -> None:
        """Send what rows that come and go mean together with the other side, and keep the rows that come.

        `left_over` are the rows of these keys that the side has, and which of them stay; None if all do.
        """
        other = 1 - index
        # What the other side has of a key may be more than one batch can hold.
        parts = self._tables[other].find_parts(keys)
        if removed is not None and removed_codes is not None:
            self._send_pairs(index, removed, removed_codes, parts, True, collector)
            if self._asks[index]:
                is_alone: Mask = removed.column(PADDED).to_numpy(zero_copy_only=False)
                self._send_single(index, removed, is_alone, True, collector)
        # Which rows of each side have a match among what is new to them.
        is_met = np.zeros(added.num_rows, dtype=np.bool_)
        is_answered: list[Mask] = []
        if any(self._asks):
            for found in parts:
                mine, theirs = self._met(index, added, added_codes, found)
                is_met |= mine
                is_answered.append(theirs)
        if self._asks[other]:
            for found, theirs in zip(parts, is_answered, strict=True):
                self._send_change(other, found.batch.filter(pa.array(_is_padded(found) & theirs)), False, collector)
        self._send_pairs(index, added, added_codes, parts, False, collector)
        if self._asks[index]:
            self._send_single(index, added, ~is_met, False, collector)
            added = added.append_column(PADDED, pa.array(~is_met))
        self._tables[index].insert(added)
        if self._asks[other]:
            is_bare = [np.zeros(len(found.codes), dtype=np.bool_) for found in parts]
            if left_over is not None:
                is_bare = [
                    ~theirs & ~self._still_met(index, found, left_over)
                    for found, theirs in zip(parts, is_answered, strict=True)
                ]
            self._flip(other, parts, is_answered, is_bare, collector)

    def _met(self, index: int, rows: pa.RecordBatch, codes: Codes, found: Found) -> tuple[Mask, Mask]:
        """Which rows of this side have a match among those found, and which of these have one among the rows."""
        if self.condition is None:
            has_key = np.zeros(len(found.starts) - 1, dtype=np.bool_)
            has_key[codes] = True
            return found.counts()[codes] > 0, has_key[found.codes]
        mine, theirs = np.zeros(rows.num_rows, dtype=np.bool_), np.zeros(len(found.codes), dtype=np.bool_)
        for _, own, others in self._matching(index, rows, codes, found):
            mine[own], theirs[others] = True, True
        return mine, theirs

    def _still_met(self, index: int, found: Found, left_over: Sequence[tuple[Found, Mask]]) -> Mask:
        """Which of the rows found have a match among those that this side has left."""
        is_met = np.zeros(len(found.codes), dtype=np.bool_)
        for own, is_kept in left_over:
            rows = own.batch.filter(pa.array(is_kept)).select(self.layout.sides[index].schema.names)
            is_met |= self._met(index, rows, own.codes[is_kept], found)[1]
        return is_met

    def _flip(
        self,
        index: int,
        parts: Sequence[Found],
        is_answered: Sequence[Mask],
        is_bare: Sequence[Mask],
        collector: ArrowCollector,
    ) -> None:
        """Note which rows are without a match now, and which no longer are."""
        changes = []
        for found, answered, bare in zip(parts, is_answered, is_bare, strict=True):
            is_padded = _is_padded(found)
            is_left = ~is_padded & bare
            self._send_change(index, found.batch.filter(pa.array(is_left)), True, collector)
            is_changed = is_left | (is_padded & answered)
            place = found.batch.schema.get_field_index(PADDED)
            after = found.batch.set_column(place, PADDED, pa.array(is_padded ^ is_changed))
            everything = np.ones(len(is_changed), dtype=np.bool_)
            changes.append(Rewrite(found=found, is_changed=is_changed, is_kept=everything, after=after))
        if any(change.is_changed.any() for change in changes):
            self._tables[index].rewrite(changes)

    def _send_change(self, index: int, rows: pa.RecordBatch, is_alone: bool, collector: ArrowCollector) -> None:
        """Send what it means that rows are without a match now, or no longer are."""
        self._send(self._padded(index, rows), is_alone is self._is_semi, collector)

    def _send_single(
        self, index: int, rows: pa.RecordBatch, is_alone: Mask, is_retract: bool, collector: ArrowCollector
    ) -> None:
        """Send rows that come or go by themselves: those without a match, of a semi join those with one."""
        is_sent = ~is_alone if self._is_semi else is_alone
        self._send(self._padded(index, rows.filter(pa.array(is_sent))), is_retract, collector)

    def _send_pairs(
        self,
        index: int,
        rows: pa.RecordBatch,
        codes: Codes,
        parts: Sequence[Found],
        is_retract: bool,
        collector: ArrowCollector,
    ) -> None:
        if self.settings.type.is_filter:
            return
        for found in parts:
            for pairs, _, _ in self._matching(index, rows, codes, found):
                self._send(pairs, is_retract, collector)

    def _matching(
        self, index: int, rows: pa.RecordBatch, codes: Codes, found: Found
    ) -> Iterator[tuple[pa.RecordBatch, Rows, Rows]]:
        """The pairs for which the condition holds, and the numbers of their rows: of this side, and of those found."""
        times = self._tables[index].times(rows)
        for mine, theirs in found.ranges(codes).chunks(pairs_at_once(rows, found.batch)):
            added = [time_array(np.maximum(times[mine], found.times[theirs]))] if self._adds_time else []
            if index == LEFT:
                yield from self.layout.matching(rows, mine, found.batch, theirs, added, self.condition)
            else:
                for pairs, left, right in self.layout.matching(found.batch, theirs, rows, mine, added, self.condition):
                    yield pairs, right, left

    def _padded(self, index: int, rows: pa.RecordBatch) -> pa.RecordBatch:
        times = [time_array(self._tables[index].times(rows))] if self._adds_time else []
        return self.layout.padded(index, rows, times)

    def _send(self, rows: pa.RecordBatch, is_retract: bool | Mask, collector: ArrowCollector) -> None:
        if rows.num_rows == 0:
            return
        if self._sends_updates:
            rows = make_updates(rows, is_retract=is_retract, ids=row_ids(rows, self._id_columns))
        collector.collect(rows)

    def _is_updating(self, layout: JoinLayout) -> bool:
        is_final = self.settings.type in (JoinType.INNER, JoinType.SEMI)
        return not is_final or any(side.is_updating for side in layout.sides)


def _has_time(layout: JoinLayout) -> bool:
    is_timed = layout.sides[LEFT].time_column is not None and layout.sides[RIGHT].time_column is not None
    return is_timed and not layout.type.is_filter


def _is_padded(found: Found) -> Mask:
    mask: Mask = found.batch.column(PADDED).to_numpy(zero_copy_only=False)
    return mask
