"""How a sequence of positions 0, 1, 2, ... is dealt to subtasks, and dealt again when there are more or fewer.

Positions come in blocks, and block b belongs to split b % 128. There are always 128 splits, whatever
the parallelism; subtask i of P owns the splits j with j % P == i. The state of a source is the next position of
every split. So a job can go on at another parallelism, and no position is made twice or left out.
A subtask always goes on with the lowest position it owns, so that event time advances evenly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from arroyo_nexmark.randomness import Int64s

SPLITS = 128

#: Stands for the end of a sequence that has none; far below the overflow of 64 bits.
ENDLESS = 2**62


@dataclass(frozen=True, slots=True)
class Slice:
    """Half-open ranges of positions, ascending, none of them empty."""

    starts: Int64s
    lengths: Int64s

    @property
    def count(self) -> int:
        return int(self.lengths.sum())

    def positions(self) -> Int64s:
        before = np.cumsum(self.lengths) - self.lengths
        return np.repeat(self.starts - before, self.lengths) + np.arange(self.count)


def owned_splits(task_index: int, parallelism: int) -> Int64s:
    return np.arange(task_index, SPLITS, parallelism, dtype=np.int64)


def owner_of(split: int, parallelism: int) -> int:
    """The subtask that owns a split."""
    return split % parallelism


class SplitCursor:
    """The next positions of the splits that one subtask owns."""

    def __init__(self, splits: Int64s, block: int, end: int | None, saved: dict[int, int]) -> None:
        """`saved` has the next position of splits that have been read before; the others are at their first."""
        self._splits = splits
        self._block = block
        self._end = ENDLESS if end is None else end
        self._next = np.array([saved.get(split, split * block) for split in splits.tolist()], dtype=np.int64)

    def is_done(self) -> bool:
        return bool((self._next >= self._end).all())

    def saved(self) -> dict[int, int]:
        """What to keep in state."""
        return dict(zip(self._splits.tolist(), self._next.tolist(), strict=True))

    def take(self, budget: int) -> Slice:
        """The next positions, lowest first: at most `budget`, and at least one unless the cursor is done."""
        starts, lengths = self._candidates(budget)
        order = np.argsort(starts, axis=None, kind="stable")
        # Beyond the last candidate of any split there may be lower positions that are not in the list.
        horizon = int(starts[-1].min()) + self._block
        sorted_starts = starts.ravel()[order]
        sorted_lengths = np.where(sorted_starts < horizon, lengths.ravel()[order], 0)
        before = np.cumsum(sorted_lengths) - sorted_lengths
        taken = np.clip(budget - before, 0, sorted_lengths)
        self._advance(starts, taken, order)
        chosen = taken > 0
        return Slice(sorted_starts[chosen], taken[chosen])

    def _candidates(self, budget: int) -> tuple[Int64s, Int64s]:
        """For every split (a column) what is left of its block, and as many whole ones as the budget may need."""
        rounds = budget // (max(len(self._splits), 1) * self._block) + 2
        firsts = self._next - self._next % self._block
        starts = firsts + np.arange(rounds)[:, None] * (SPLITS * self._block)
        ends = starts + self._block
        starts[0] = self._next
        return starts, np.maximum(np.minimum(ends, self._end) - starts, 0)

    def _advance(self, starts: Int64s, taken: Int64s, order: Int64s) -> None:
        counts = np.empty_like(taken)
        counts[order] = taken
        counts = counts.reshape(starts.shape)
        # Positions ascend within a split, so what is taken of it is a prefix of its column.
        last = np.maximum((counts > 0).sum(axis=0) - 1, 0)
        columns = np.arange(starts.shape[1])
        ends = starts[last, columns] + counts[last, columns]
        is_block_done = (ends % self._block == 0) & (counts[last, columns] > 0)
        self._next = ends + is_block_done * ((SPLITS - 1) * self._block)
