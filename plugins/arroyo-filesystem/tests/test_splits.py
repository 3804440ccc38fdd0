from __future__ import annotations

from itertools import pairwise

from arroyo_filesystem.listing import File
from arroyo_filesystem.splits import LEAST_SPLIT_BYTES, choose_split_bytes, deal, merge_ranges
from hypothesis import given
from hypothesis import strategies as st


@given(st.integers(0, 100), st.integers(1, 9))
def test_every_split_is_dealt_to_exactly_one_subtask(count: int, parallelism: int) -> None:
    dealt = [n for task in range(parallelism) for n in deal(count, task_index=task, parallelism=parallelism)]
    assert sorted(dealt) == list(range(count))


@given(st.lists(st.sets(st.integers(0, 60)), max_size=6))
def test_merged_ranges_hold_exactly_what_was_merged(steps: list[set[int]]) -> None:
    ranges: list[tuple[int, int]] = []
    for step in steps:
        ranges = merge_ranges(ranges, step)
    assert {n for start, stop in ranges for n in range(start, stop)} == set().union(*steps)
    assert all(left[1] < right[0] for left, right in pairwise(ranges))


def test_split_size_keeps_subtasks_busy_within_bounds() -> None:
    def chosen(size: int, parallelism: int = 2) -> int:
        return choose_split_bytes([File("a", size)], greatest=64 * 2**20, parallelism=parallelism)

    assert chosen(1000) == LEAST_SPLIT_BYTES
    assert chosen(2**40) == 64 * 2**20
    assert chosen(80 * 2**20) == 10 * 2**20
