"""Dealing positions to subtasks."""

from __future__ import annotations

import numpy as np
from arroyo_nexmark.splits import SPLITS, SplitCursor, owned_splits
from hypothesis import given, settings
from hypothesis import strategies as st


@given(st.integers(1, 300))
def test_every_split_has_one_owner(parallelism: int):
    owned = np.concatenate([owned_splits(index, parallelism) for index in range(parallelism)])
    assert sorted(owned.tolist()) == list(range(SPLITS))


@given(
    end=st.integers(0, 30_000),
    block=st.integers(1, 60),
    rounds=st.lists(st.tuples(st.integers(1, 5), st.lists(st.integers(1, 4000), min_size=1, max_size=6)), max_size=5),
)
@settings(max_examples=200, deadline=None)
def test_any_budgets_at_any_parallelism_give_every_position_once(
    end: int, block: int, rounds: list[tuple[int, list[int]]]
):
    state: dict[int, int] = {}
    seen: list[np.ndarray] = []

    def epoch(parallelism: int, budgets: list[int] | None) -> None:
        written: dict[int, int] = {}
        for index in range(parallelism):
            cursor = SplitCursor(owned_splits(index, parallelism), block, end, state)
            for budget in budgets or iter(lambda: 5000, None):
                if cursor.is_done():
                    break
                taken = cursor.take(budget + index)
                assert 0 < taken.count <= budget + index
                positions = taken.positions()
                assert (np.diff(positions) > 0).all()
                seen.append(positions)
            written |= cursor.saved()
        state.update(written)

    for parallelism, budgets in rounds:
        epoch(parallelism, budgets)
    epoch(3, None)
    assert np.array_equal(np.sort(np.concatenate([*seen, np.zeros(0, dtype=np.int64)])), np.arange(end))


def test_a_subtask_catches_up_on_its_lowest_split_before_it_goes_on():
    ahead = {split: split * 10 + SPLITS * 10 * 50 for split in range(SPLITS)}
    lagging = {**ahead, 5: 50}
    cursor = SplitCursor(owned_splits(0, 1), 10, None, lagging)
    positions: list[int] = []
    while len(positions) < 500:
        positions += cursor.take(300).positions().tolist()
    assert positions[:500] == [5 * 10 + SPLITS * 10 * (i // 10) + i % 10 for i in range(500)]


def test_positions_ascend_over_batches_when_all_splits_are_level():
    cursor = SplitCursor(owned_splits(1, 2), 500, None, {})
    batches = [cursor.take(35_000).positions() for _ in range(6)]
    everything = np.concatenate(batches)
    assert (np.diff(everything) > 0).all()
    assert len(everything) == 6 * 35_000
    assert set((everything // 500 % SPLITS % 2).tolist()) == {1}


def test_a_subtask_beyond_the_splits_has_nothing_to_do():
    assert SplitCursor(owned_splits(200, 201), 10, None, {}).is_done()
