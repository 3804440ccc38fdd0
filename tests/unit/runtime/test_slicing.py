"""Batches cut by bytes, whatever their rows weigh."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.runtime.slicing import cut

#: What a slice may have beyond what was asked for.
MOST = 1.5


def batch_of(sizes):
    return pa.record_batch({"n": pa.array(range(len(sizes)), pa.int64()), "text": ["x" * size for size in sizes]})


@given(
    st.lists(st.one_of(st.integers(0, 20), st.integers(900, 1100), st.just(50_000)), min_size=1, max_size=120),
    st.integers(200, 5000),
)
def test_slices_are_all_rows_in_order_and_none_is_large_but_for_a_single_row(sizes, max_bytes):
    batch = batch_of(sizes)
    parts = list(cut(batch, max_bytes))
    assert pa.concat_batches(parts) == batch
    assert all(part.nbytes <= max_bytes * MOST or part.num_rows == 1 for part in parts)


def test_equal_rows_make_equal_slices_near_the_limit():
    assert [part.num_rows for part in cut(batch_of([1000] * 1000), 100_000)] == [100] * 10


def test_one_large_row_does_not_make_single_rows_of_the_others():
    parts = list(cut(batch_of([10] * 2000 + [1_000_000] + [10] * 2000), 10_000))
    assert [part.num_rows for part in parts if part.nbytes > 100_000] == [1]
    assert len(parts) < 30


def test_a_small_batch_stays_as_it_is():
    batch = batch_of([10] * 5)
    assert list(cut(batch, 1 << 20)) == [batch]
    assert list(cut(batch.slice(0, 0), 1)) == [batch.slice(0, 0)]


def test_slices_of_nested_columns_count_what_they_refer_to():
    batch = pa.record_batch({"a": [[{"b": "x" * 1000}] * (row % 3) for row in range(600)]})
    parts = list(cut(batch, 10_000))
    assert pa.concat_batches(parts) == batch
    assert 55 < len(parts) < 75


@pytest.mark.parametrize("kind", [pa.string_view(), pa.dictionary(pa.int32(), pa.string())])
def test_columns_whose_slices_refer_to_all_of_their_parent_are_not_cut(kind):
    batch = pa.record_batch({"a": pa.array([f"{row:0100}" for row in range(100)]).cast(kind)})
    assert [part.num_rows for part in cut(batch, 1000)] == [100]
