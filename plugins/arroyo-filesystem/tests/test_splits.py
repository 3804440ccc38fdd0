from __future__ import annotations

from itertools import pairwise

from arroyo_filesystem.formats.format import Format
from arroyo_filesystem.listing import File
from arroyo_filesystem.splits import (
    GREATEST_SPLIT_BYTES,
    LEAST_SPLIT_BYTES,
    TO_THE_END,
    Split,
    choose_split_bytes,
    cut_parts,
    cut_text,
    deal,
    merge_ranges,
    needs_parts,
)
from hypothesis import given
from hypothesis import strategies as st


@given(st.lists(st.integers(0, 200), max_size=50), st.integers(1, 300))
def test_parts_are_cut_into_neighbours_that_cover_all_and_overshoot_only_alone(
    sizes: list[int], split_bytes: int
) -> None:
    splits = cut_parts(3, sizes, split_bytes=split_bytes)
    assert [part for split in splits for part in range(split.start, split.stop)] == list(range(len(sizes)))
    assert {split.file for split in splits} <= {3}
    for split in splits:
        held = sizes[split.start : split.stop]
        assert sum(held) <= split_bytes or len(held) == 1


@given(st.integers(0, 10_000), st.integers(1, 500))
def test_text_is_cut_into_byte_ranges_without_gap(size: int, split_bytes: int) -> None:
    splits = cut_text(0, File("a.csv", size), split_bytes=split_bytes, is_splittable=True)
    if size <= split_bytes:
        assert splits == [Split(0, 0, TO_THE_END)]
    else:
        assert splits[0].start == 0
        assert splits[-1].stop == size
        assert all(left.stop == right.start for left, right in pairwise(splits))


def test_compressed_and_unsplittable_text_is_one_split() -> None:
    whole = [Split(0, 0, TO_THE_END)]
    assert cut_text(0, File("a.csv.gz", 1000), split_bytes=10, is_splittable=True) == whole
    assert cut_text(0, File("a.csv", 1000), split_bytes=10, is_splittable=False) == whole


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
        return choose_split_bytes([File("a", size)], kind=Format.PARQUET, parallelism=parallelism)

    assert chosen(1000) == LEAST_SPLIT_BYTES
    assert chosen(2**40) == GREATEST_SPLIT_BYTES[Format.PARQUET]
    assert chosen(80 * 2**20) == 10 * 2**20


def test_only_large_binary_files_are_opened_to_be_cut() -> None:
    assert needs_parts(File("a", 11), kind=Format.PARQUET, split_bytes=10)
    assert not needs_parts(File("a", 10), kind=Format.PARQUET, split_bytes=10)
    assert not needs_parts(File("a", 11), kind=Format.JSON, split_bytes=10)
