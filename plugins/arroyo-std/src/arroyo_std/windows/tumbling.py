"""`std.tumbling_window` and `std.sliding_window`: windows of a fixed size on a grid."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from arroyo_core.api import ArrowOperator, ArroyoSchema, OperatorContext, Registry
from arroyo_core.api.units import format_duration_us
from arroyo_core.state import ColumnRules, timestamp_table_config
from arroyo_std import large_rows
from arroyo_std.aggregates.groups import Groups, number_values
from arroyo_std.large_rows import concat, is_large, size_bytes
from arroyo_std.windows.bins import BinStore
from arroyo_std.windows.layout import WINDOW_START, WindowLayout
from arroyo_std.windows.partial import PartialWindow
from arroyo_std.windows.progress import FiringProgress
from arroyo_std.windows.times import Times, floor_time, floor_to_grid, time_array, times_us
from arroyo_std.windows.windowed import UNLIMITED, WindowOperator, WindowSettings

if TYPE_CHECKING:
    from arroyo_core.state import TableConfig

BINS_TABLE = "t"

#: Sliding windows are merged together that have so many rows, as far as the ones before tell; one at least, and no more
#: than one batch can hold.
MERGED_ROWS = 2**18


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Windows of `size`, one beginning at `offset` and at every `slide` before and after it."""

    size_us: int
    slide_us: int
    offset_us: int = 0

    def bins(self, times: Times) -> Times:
        """The start of the bin, as long as the slide, that each time is in."""
        return floor_to_grid(times, self.slide_us, self.offset_us)


def aggregate_bins(
    layout: WindowLayout, grid: Grid, batch: pa.RecordBatch, *, times: Times, arrivals: Times
) -> tuple[list[pa.Array], Groups]:
    """The columns of the layout's `state`, one row per key and bin, and which rows of the batch are in each."""
    keys = layout.key_columns(batch)
    numbers, count = number_values(keys, batch.num_rows)
    # Most batches lie in few bins.
    first_us = grid.bins(times.min(keepdims=True))
    groups = Groups.of_pairs((times - first_us) // grid.slide_us, numbers, count)
    first = groups.first_rows()
    states = layout.plan.partial(batch, groups, times_us=times, arrivals=arrivals)
    taken = [key.take(pa.array(first)) for key in keys]
    return [*taken, time_array(grid.bins(times[first])), *states], groups


class PartialBins(PartialWindow):
    """One row per key and bin of each batch."""

    def __init__(self, name: str, grid: Grid, layout: WindowLayout) -> None:
        super().__init__(name, layout, layout.partial)
        self._grid = grid

    def aggregate(
        self, batch: pa.RecordBatch, ctx: OperatorContext, *, times: Times, arrivals: Times
    ) -> list[pa.Array]:
        columns, groups = aggregate_bins(self._layout, self._grid, batch, times=times, arrivals=arrivals)
        return [*columns, pa.array(groups.sizes())]


class BinnedWindow(WindowOperator):
    """Keeps partial aggregates by key and bin, a bin being as long as the slide."""

    def __init__(self, grid: Grid, settings: WindowSettings, registry: Registry) -> None:
        super().__init__(settings, registry)
        self._grid = grid

    def shortest_us(self) -> int:
        return self._grid.slide_us

    def state_tables(self, layout: WindowLayout) -> dict[str, TableConfig]:
        retention = timedelta(microseconds=self._grid.size_us + self._settings.allowed_lateness_us)
        return {
            BINS_TABLE: timestamp_table_config(
                BINS_TABLE,
                "partial aggregates by key and bin",
                UNLIMITED if self._settings.is_processing_time else retention,
                False,
                layout.state,
                column_rules=ColumnRules(owners=layout.plan.column_owners()),
            )
        }

    def open(self, layout: WindowLayout, ctx: OperatorContext) -> None:
        self.store = BinStore(layout, ctx.table_manager.get_expiring_time_key_table(BINS_TABLE))

    def row_ends_us(self, times: Times) -> Times:
        return self._bins(times) + self._grid.size_us

    def partial(self, inputs: Sequence[ArroyoSchema]) -> ArrowOperator | None:
        layout = self.partial_layout(inputs[0])
        return PartialBins(self.name(), self._grid, layout) if layout else None

    def add(self, layout: WindowLayout, batch: pa.RecordBatch, *, times: Times, arrivals: Times) -> None:
        columns, _ = aggregate_bins(layout, self._grid, batch, times=times, arrivals=arrivals)
        self.keep(pa.RecordBatch.from_arrays(columns, schema=layout.state.schema))

    def add_partials(self, layout: WindowLayout, batch: pa.RecordBatch) -> None:
        self.keep(pa.RecordBatch.from_arrays(batch.columns[:-1], schema=layout.state.schema))

    def keep(self, rows: pa.RecordBatch) -> None:
        """Take partial aggregates: rows of the layout's `state`."""
        self.store.add(rows)

    def save(self, epoch: int) -> None:
        self.store.flush(epoch)

    def _bins(self, times: Times) -> Times:
        return self._grid.bins(times)


class TumblingWindow(BinnedWindow):
    """Every row is in one window."""

    def name(self) -> str:
        return "std.tumbling_window"

    def display_window(self) -> list[tuple[str, str]]:
        offset_us = self._grid.offset_us
        return [
            ("size", format_duration_us(self._grid.size_us)),
            ("offset", format_duration_us(offset_us) if offset_us else ""),
        ]

    def geometry(self) -> dict[str, str]:
        return {
            "size": format_duration_us(self._grid.size_us),
            "offset": format_duration_us(self._grid.offset_us),
            "early results": "sent" if self.has_sent() else "not sent",
        }

    def fire(self, layout: WindowLayout, *, until_us: int, progress: FiringProgress) -> Iterator[pa.RecordBatch]:
        for rows in self.store.take_before(floor_time(until_us, self._grid.size_us, self._grid.offset_us)):
            starts = times_us(rows.column(WINDOW_START))
            keys = [rows.column(key) for key in layout.keys]
            yield layout.finish(keys, layout.states_of(rows), starts_us=starts, ends_us=starts + self._grid.size_us)


class SlidingWindow(BinnedWindow):
    """Every row is in `size / slide` windows, each of which merges the bins it spans."""

    #: How many windows are merged together next.
    _at_once = 1

    def name(self) -> str:
        return "std.sliding_window"

    def display_window(self) -> list[tuple[str, str]]:
        return [("size", format_duration_us(self._grid.size_us)), ("slide", format_duration_us(self._grid.slide_us))]

    def geometry(self) -> dict[str, str]:
        return {
            "size": format_duration_us(self._grid.size_us),
            "slide": format_duration_us(self._grid.slide_us),
            "offset": format_duration_us(self._grid.offset_us),
        }

    def fire(self, layout: WindowLayout, *, until_us: int, progress: FiringProgress) -> Iterator[pa.RecordBatch]:
        grid = self._grid
        last_end_us = floor_time(until_us, grid.slide_us, grid.offset_us)
        fired_us = progress.fired_us - self._settings.allowed_lateness_us
        if last_end_us <= fired_us and not progress.is_uneven:
            return
        starts = self.store.starts()
        ends = self._ends(starts, after_us=fired_us, until_us=last_end_us)
        while ends:
            some = ends[: self._at_once]
            bins = starts[bisect_left(starts, some[0] - grid.size_us) : bisect_left(starts, some[-1])]
            parts = self.store.read(bins)
            size = size_bytes(parts)
            if len(some) > 1 and size * min(len(some), grid.size_us // grid.slide_us) > large_rows.BATCH_BYTES:
                # These are larger than the ones before.
                self._at_once = 1
                continue
            ends = ends[len(some) :]
            # Of one window, which bin a row is in does not matter.
            for rows in self.store.merge_keys(parts) if is_large(parts) else [concat(parts)]:
                yield self._merge_windows(layout, rows, first_us=some[0], last_us=some[-1], progress=progress)
            self._at_once = self._fitting(sum(part.num_rows for part in parts) // len(bins), size // len(bins))
        self.store.drop_before(last_end_us - grid.size_us + grid.slide_us)

    def _fitting(self, bin_rows: int, bin_bytes: int) -> int:
        """How many windows are merged together, of bins like these."""
        bins = self._grid.size_us // self._grid.slide_us
        by_rows = MERGED_ROWS // max(1, bin_rows * bins)
        # Each row is copied once for each of its windows; twice as much to be safe.
        by_bytes = large_rows.BATCH_BYTES // max(1, 2 * bin_bytes * bins)
        return max(1, min(by_rows, by_bytes))

    def _ends(self, starts: list[int], *, after_us: int, until_us: int) -> list[int]:
        """The ends of windows that have rows and are due, in order."""
        grid = self._grid
        offsets = range(grid.slide_us, grid.size_us + 1, grid.slide_us)
        ends = {start + offset for start in starts for offset in offsets}
        return sorted(end for end in ends if after_us < end <= until_us)

    def _merge_windows(
        self, layout: WindowLayout, rows: pa.RecordBatch, *, first_us: int, last_us: int, progress: FiringProgress
    ) -> pa.RecordBatch:
        """The windows that end from `first_us` to `last_us`, from the rows of their bins; those that have not fired."""
        grid = self._grid
        starts = times_us(rows.column(WINDOW_START))
        after_us = np.maximum(progress.fired_for(rows) - self._settings.allowed_lateness_us + 1, first_us)
        # Every row is in several windows: once with each of them.
        ends = [starts + offset for offset in range(grid.slide_us, grid.size_us + 1, grid.slide_us)]
        members = [np.flatnonzero((end >= after_us) & (end <= last_us)) for end in ends]
        all_ends = np.concatenate([end[member] for end, member in zip(ends, members, strict=True)])
        chosen = np.concatenate(members)
        keys = [rows.column(key) for key in layout.keys]
        numbers, count = number_values(keys, rows.num_rows)
        windows = (all_ends - first_us) // grid.slide_us
        groups = Groups.of_pairs(windows, numbers[chosen], count)
        first = groups.first_rows()
        taken = pa.array(chosen)
        states = layout.plan.merge([state.take(taken) for state in layout.states_of(rows)], groups)
        representatives = pa.array(chosen[first])
        return layout.finish(
            [key.take(representatives) for key in keys],
            states,
            starts_us=all_ends[first] - grid.size_us,
            ends_us=all_ends[first],
        )
