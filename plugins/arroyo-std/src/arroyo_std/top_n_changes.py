"""From the first rows that groups had to those that they have: what is taken back, and what is added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from arroyo_core.api import ArrowCollector
from arroyo_core.api.updating import make_updates, row_ids
from arroyo_std.aggregates.groups import Codes, Groups, Mask
from arroyo_std.large_rows import Rows, take_batches
from arroyo_std.ranking import ranks_in_groups
from arroyo_std.row_values import row_hashes


@dataclass(frozen=True, slots=True)
class FirstRows:
    """The first rows of some groups, by group and rank, as numbers of rows. Rows with one identity are the same row."""

    rows: Codes
    groups: Codes
    ranks: Codes
    identities: Codes


class Changes:
    """From two results over the same rows to the rows of an updating stream."""

    def __init__(self, partition_by: Sequence[str], rank_column: str | None) -> None:
        self._partition_by = partition_by
        self._rank_column = rank_column

    def collect(self, rows: Rows, before: FirstRows, after: FirstRows, collector: ArrowCollector) -> None:
        """Send what is only in `before` as taken back, and what is only in `after` as added, group by group."""
        gone, new = self._differences(before, after)
        if not (gone.any() or new.any()):
            return
        numbers = np.concatenate([before.rows[gone], after.rows[new]])
        groups = np.concatenate([before.groups[gone], after.groups[new]])
        ranks = np.concatenate([before.ranks[gone], after.ranks[new]])
        is_retract = np.repeat([True, False], [int(gone.sum()), int(new.sum())])
        # With ranks, one place after the other changes; without, rows go before others come.
        order = np.lexsort([~is_retract, ranks, groups] if self._rank_column else [ranks, ~is_retract, groups])
        ranks, is_retract = ranks[order], is_retract[order]
        start = 0
        for batch in take_batches(rows, numbers[order]):
            end = start + batch.num_rows
            collector.collect(self._updates(batch, ranks[start:end], is_retract[start:end]))
            start = end

    def _differences(self, before: FirstRows, after: FirstRows) -> tuple[Mask, Mask]:
        keys = [
            np.concatenate([before.groups, after.groups]),
            np.concatenate([before.identities, after.identities]),
        ]
        if self._rank_column:
            keys.append(np.concatenate([before.ranks, after.ranks]))
        else:
            # A row that is there twice is told apart by its count.
            keys.append(np.concatenate([_occurrences(before), _occurrences(after)]))
        codes = Groups.of_columns([pa.array(key) for key in keys], len(keys[0])).codes
        split = len(before.groups)
        return ~np.isin(codes[:split], codes[split:]), ~np.isin(codes[split:], codes[:split])

    def _updates(self, rows: pa.RecordBatch, ranks: Codes, is_retract: Mask) -> pa.RecordBatch:
        if self._rank_column is None:
            return make_updates(rows, is_retract=is_retract, ids=row_hashes(rows.columns, rows.num_rows))
        rows = rows.append_column(pa.field(self._rank_column, pa.int64()), pa.array(ranks + 1))
        return make_updates(rows, is_retract=is_retract, ids=row_ids(rows, [*self._partition_by, self._rank_column]))


def _occurrences(result: FirstRows) -> Codes:
    """Of rows with one identity in one group the first is 0, the next 1, and so on."""
    codes = Groups.of_columns([pa.array(result.groups), pa.array(result.identities)], len(result.groups)).codes
    order = np.argsort(codes, kind="stable")
    found = np.empty(len(codes), dtype=np.int64)
    found[order] = ranks_in_groups(codes[order])
    return found
