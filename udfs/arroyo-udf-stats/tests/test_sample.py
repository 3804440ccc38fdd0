"""Samples: the same at every run and cut, of the right size, and fair."""

from collections import Counter

import pytest
from arroyo_udf_stats.sample import ReservoirSample, reservoir_sample
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.errors import UdfError

ROWS = st.lists(st.tuples(st.sampled_from(["", "a", "é"]) | st.text(max_size=2), st.integers(0, 60)), max_size=60)
CUTS = st.lists(st.integers(0, 60), max_size=4)


def sample(aggregate, rows, size, seed=1, **parts):
    values, sequences = [row[0] for row in rows], [row[1] for row in rows]
    return aggregate(reservoir_sample, values, sequences, [size] * len(rows), [seed] * len(rows), **parts)


@given(ROWS, st.integers(1, 10), st.integers(-(2**63), 2**63 - 1), CUTS, st.randoms(use_true_random=False))
def test_a_sample_does_not_depend_on_batches_nor_on_order(aggregate, rows, size, seed, cuts, order):
    expected = sample(aggregate, rows, size, seed)
    shuffled = order.sample(rows, len(rows))
    assert sample(aggregate, shuffled, size, seed, cuts=cuts, order=order) == expected
    if not rows:
        assert expected is None
        return
    assert len(expected) == min(size, len(set(rows)))
    assert not Counter(expected) - Counter(value for value, _ in set(rows))


def test_the_first_of_a_larger_sample_are_the_smaller_sample(aggregate):
    rows = [(f"{place}", place) for place in range(1000)]
    assert sample(aggregate, rows, 100)[:10] == sample(aggregate, rows, 10)


def test_every_row_has_the_same_chance_and_the_seed_decides(aggregate):
    rows = [(f"{place}", place) for place in range(20)]
    drawn = Counter()
    for seed in range(300):
        drawn.update(sample(aggregate, rows, 5, seed))
    # 300 draws of 5 among 20: 75 times each, give or take four standard deviations of 7.5.
    assert len(drawn) == 20
    assert all(45 <= times <= 105 for times in drawn.values()), drawn


def test_a_frequent_value_is_drawn_as_often_as_it_occurs(aggregate):
    rows = [("often" if place % 10 else "rarely", place) for place in range(10_000)]
    assert Counter(sample(aggregate, rows, 1000))["rarely"] == pytest.approx(100, abs=40)


def test_with_a_constant_number_it_is_a_sample_of_distinct_values(aggregate):
    rows = [("often", 0)] * 1000 + [(f"{place}", 0) for place in range(5)]
    found = sample(aggregate, rows, 6)
    assert sorted(found) == ["0", "1", "2", "3", "4", "often"]
    assert sample(aggregate, rows[::-1], 6, cuts=[3, 700]) == found


def test_a_sample_has_not_changed_since_it_was_first_drawn(aggregate):
    rows = [(f"{place}", place) for place in range(100)]
    assert sample(aggregate, rows, 5, seed=42) == ["99", "48", "82", "80", "2"]


@pytest.mark.parametrize("size", [0, -5, 10_001])
def test_a_size_that_is_not_possible_is_named(aggregate, size):
    with pytest.raises(UdfError, match=f"a sample of {size} rows: from 1 to 10000 are possible"):
        sample(aggregate, [("a", 1)], size)


def test_settings_that_differ_within_a_group_are_named(aggregate):
    for cuts in ([], [1]):
        with pytest.raises(UdfError, match="the size of the sample differs within one group: 1 and 2"):
            aggregate(reservoir_sample, ["a", "b"], [1, 2], [1, 2], [7, 7], cuts=cuts)
        with pytest.raises(UdfError, match="the seed differs within one group: 7 and 8"):
            aggregate(reservoir_sample, ["a", "b"], [1, 2], [1, 1], [7, 8], cuts=cuts)


def test_row_by_row_is_the_same_as_by_batch(aggregate):
    rows = [(f"{place}", place) for place in range(30)]
    kind = ReservoirSample()
    state = kind.init()
    for value, sequence in rows:
        state = kind.update(state, value, sequence, 4, 9)
    assert kind.finish(state) == sample(aggregate, rows, 4, 9)
