"""How formats cut files into parts for different subtasks."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from arroyo_formats import WHOLE_FILE, file_formats, find_format
from arroyo_formats.whole_files import cut_parts
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.api import with_defaults


def cut_csv(path: str, size: int, part_bytes: int, **settings: Any) -> list[tuple[int, int]]:
    written = with_defaults(find_format("csv").settings_type(**settings))
    return list(file_formats()["csv"].cut(written, None, path, size=size, part_bytes=part_bytes))


@given(st.lists(st.integers(0, 200), max_size=50), st.integers(1, 300))
def test_pieces_are_cut_into_neighbours_that_cover_all_and_overshoot_only_alone(
    sizes: list[int], part_bytes: int
) -> None:
    parts = cut_parts(sizes, part_bytes=part_bytes)
    assert [piece for start, stop in parts for piece in range(start, stop)] == list(range(len(sizes)))
    for start, stop in parts:
        held = sizes[start:stop]
        assert sum(held) <= part_bytes or len(held) == 1


@given(st.integers(0, 10_000), st.integers(1, 500))
def test_text_is_cut_into_byte_ranges_without_gap(size: int, part_bytes: int) -> None:
    parts = cut_csv("a.csv", size, part_bytes)
    if size <= part_bytes:
        assert parts == [WHOLE_FILE]
    else:
        assert parts[0][0] == 0
        assert parts[-1][1] == size
        assert all(left[1] == right[0] for left, right in pairwise(parts))


def test_compressed_text_and_text_with_line_ends_in_values_is_one_part() -> None:
    assert cut_csv("a.csv.gz", 1000, 10) == [WHOLE_FILE]
    assert cut_csv("a.csv", 1000, 10, newlines_in_values=True) == [WHOLE_FILE]
