"""Hashes of whole values, by which lists and maps are compared."""

from __future__ import annotations

import pyarrow as pa
import pytest
from arroyo_std.row_values import group_rows, value_hashes
from arroyo_testing.steps import count_steps

VALUES = [[1, 2], None, [], [2, 1], [1, None], [1, 2], None]
#: A null list has elements below it in these, which do not count.
HIDDEN = pa.ListArray.from_arrays(
    pa.array([0, 2, 4, 4, 6, 8, 10, 12], pa.int32()),
    pa.array([1, 2, 7, 7, 2, 1, 1, None, 1, 2, 8, 8]),
    mask=pa.array([value is None for value in VALUES]),
)


@pytest.mark.parametrize("column", [pa.array(VALUES, pa.list_(pa.int64())), HIDDEN], ids=["plain", "hidden elements"])
def test_equal_lists_have_equal_hashes_wherever_they_are(column):
    assert column.to_pylist() == VALUES
    hashes = value_hashes(column).tolist()
    assert hashes == value_hashes(pa.array(VALUES, pa.list_(pa.int64()))).tolist()
    assert [hashes.index(each) for each in hashes] == [VALUES.index(each) for each in VALUES]
    for start in range(len(VALUES)):
        assert value_hashes(column.slice(start)).tolist() == hashes[start:]


def test_nulls_of_a_fixed_size_are_one_value():
    column = pa.array([[1, 2], None, [1, 2], None], pa.list_(pa.int64(), 2))
    first, null, *others = value_hashes(column).tolist()
    assert others == [first, null]
    assert first != null


def test_lists_are_compared_without_a_step_for_each():
    few, many = (pa.array([[row] for row in range(rows)]) for rows in (10, 10_000))
    assert count_steps(lambda: group_rows([many], 10_000)) <= count_steps(lambda: group_rows([few], 10))
