"""Groups: equal values have equal numbers, in the order of their first appearance."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from arroyo_std.aggregates.groups import Groups, Kernel, NumberedGroups, number_values, order_by_code
from hypothesis import given, settings
from hypothesis import strategies as st

COLUMNS: dict[str, tuple[pa.DataType, Any]] = {
    "small integers": (pa.int64(), st.integers(-3, 3)),
    "far integers": (pa.int64(), st.sampled_from([-(2**63), -1, 0, 2**63 - 1])),
    "unsigned": (pa.uint64(), st.sampled_from([0, 1, 2**64 - 1])),
    "times": (pa.timestamp("us", "UTC"), st.integers(-1, 1)),
    "clock times": (pa.time64("ns"), st.integers(0, 2)),
    "dates": (pa.date32(), st.integers(0, 2)),
    "short integers": (pa.int16(), st.sampled_from([-20_000, -5_535, 3, 20_000])),
    "bytes": (pa.int8(), st.integers(-128, 127)),
    "floats": (pa.float64(), st.sampled_from([0.0, -0.0, math.nan, 1.5, -math.inf])),
    "halves": (pa.float16(), st.sampled_from([0.0, -0.0, 1.5])),
    "text": (pa.string(), st.sampled_from(["", "a", "b"])),
    "views": (pa.string_view(), st.sampled_from(["", "a", "b"])),
    "booleans": (pa.bool_(), st.booleans()),
    "dictionaries": (pa.dictionary(pa.int8(), pa.string()), st.sampled_from(["x", "y"])),
    "structs": (
        pa.struct({"x": pa.int64(), "y": pa.string()}),
        st.fixed_dictionaries({"x": st.none() | st.integers(0, 1), "y": st.just("z")}),
    ),
    "nulls": (pa.null(), st.none()),
}


def same(value: Any) -> Any:
    """A value that equals what it is grouped with."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    return tuple(sorted(value.items(), key=str)) if isinstance(value, dict) else value


@pytest.mark.parametrize("kind", COLUMNS)
@settings(deadline=None)
@given(data=st.data())
def test_equal_values_have_equal_numbers_by_first_appearance(kind, data):
    data_type, values = COLUMNS[kind]
    rows = data.draw(st.lists(st.tuples(st.none() | values, st.none() | st.integers(0, 1)), max_size=12))
    columns = [pa.array([row[0] for row in rows], data_type), pa.array([row[1] for row in rows], pa.int64())]
    groups = Groups.of_columns(columns, len(rows))
    keys = [(same(row[0]), row[1]) for row in rows]
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    assert groups.codes.tolist() == [numbers[key] for key in keys]
    assert groups.count == len(numbers)
    assert groups.first_rows().tolist() == [keys.index(key) for key in numbers]
    assert groups.sizes().tolist() == [keys.count(key) for key in numbers]


@settings(deadline=None)
@given(
    values=st.lists(st.sampled_from([-128, -27, 28, 100, 2**40]), min_size=1), kind=st.sampled_from(["int8", "int64"])
)
def test_numbers_of_values_are_equal_where_the_values_are(values, kind):
    column = pa.array([value % 101 - 100 if kind == "int8" else value for value in values], pa.type_for_alias(kind))
    numbers, bound = number_values([column], len(column))
    assert len(set(zip(column.to_pylist(), numbers.tolist(), strict=True))) == len(set(column.to_pylist()))
    assert len(set(numbers.tolist())) == len(set(column.to_pylist()))
    assert 0 <= numbers.min() <= numbers.max() < bound


@settings(deadline=None)
@given(numbers=st.lists(st.integers(0, 9), max_size=30))
def test_numbered_groups_are_like_others_in_the_order_of_their_numbers(numbers):
    groups = NumberedGroups(np.array(numbers, dtype=np.int64), 10)
    there = sorted(set(numbers))
    assert groups.numbers.tolist() == there
    assert groups.count == len(there)
    assert groups.codes.tolist() == [there.index(number) for number in numbers]
    assert groups.first_rows().tolist() == [numbers.index(number) for number in there]
    assert groups.sizes().tolist() == [numbers.count(number) for number in there]


@settings(deadline=None)
@given(runs=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 30)), min_size=1, max_size=8))
def test_values_that_stand_together_are_numbered_as_others_are(runs):
    values = [value for value, length in runs for _ in range(length)]
    groups = Groups.of_columns([pa.array(values, pa.timestamp("us"))], len(values))
    numbers = {value: number for number, value in enumerate(dict.fromkeys(values))}
    assert groups.codes.tolist() == [numbers[value] for value in values]
    assert groups.count == len(numbers)


@settings(deadline=None)
@given(
    rows=st.lists(st.tuples(st.sampled_from([0, 1, 10**6, 2**62]), st.integers(0, 1)), max_size=40),
    minor_count=st.sampled_from([5, 10**5]),
)
def test_equal_pairs_are_one_group_however_large_they_are(rows, minor_count):
    majors, minors = (np.array([row[place] for row in rows], dtype=np.int64) for place in (0, 1))
    groups = Groups.of_pairs(majors, minors, minor_count)
    assert groups.count == len(set(rows))
    assert len({*zip(groups.codes.tolist(), rows, strict=True)}) == groups.count
    assert sorted(set(groups.codes.tolist())) == list(range(groups.count))


def test_without_columns_all_rows_are_one_group():
    assert Groups.of_columns([], 3).codes.tolist() == [0, 0, 0]
    assert Groups.of_columns([], 0).count == 0


@settings(deadline=None)
@given(codes=st.lists(st.integers(0, 5), max_size=20), values=st.data())
def test_kernels_give_the_same_with_and_without_nulls_and_empty_groups(codes, values):
    numbers = values.draw(st.lists(st.none() | st.integers(-9, 9), min_size=len(codes), max_size=len(codes)))
    groups = Groups(np.array(codes, dtype=np.int64), 6, has_empty=True)
    kernels = [Kernel(name, pa.array(numbers, pa.int64())) for name in ("sum", "min", "max", "count")]
    found = [each.to_pylist() for each in groups.run([*kernels, Kernel("count_all")])]
    for code in range(6):
        mine = [number for owner, number in zip(codes, numbers, strict=True) if owner == code and number is not None]
        expected = [sum(mine) if mine else None, min(mine, default=None), max(mine, default=None), len(mine)]
        assert [each[code] for each in found] == [*expected, codes.count(code)]


@settings(deadline=None)
@given(codes=st.lists(st.integers(0, 3), max_size=20), count=st.sampled_from([4, 100_000]))
def test_sorting_by_code_keeps_the_order_within_a_code(codes, count):
    order = order_by_code(np.array(codes, dtype=np.int64), count)
    assert order.tolist() == sorted(range(len(codes)), key=lambda place: codes[place])
