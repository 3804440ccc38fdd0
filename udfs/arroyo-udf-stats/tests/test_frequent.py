"""The most frequent values, beside `Counter`, from states that are cut and merged at random."""

from collections import Counter

import pytest
from arroyo_udf_stats.frequent import Mode, TopValues, mode, mode_int, top_values
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.errors import UdfError

TEXTS = st.lists(st.sampled_from(["", "a", "b", "é", "\0", "ab"]) | st.text(max_size=2), max_size=40)
CUTS = st.lists(st.integers(0, 40), max_size=4)
ORDERS = st.randoms(use_true_random=False)


def ranked(values):
    return sorted(Counter(values).items(), key=lambda item: (-item[1], item[0]))


@given(TEXTS, CUTS, ORDERS)
def test_the_mode_is_the_first_of_the_most_frequent(aggregate, values, cuts, order):
    expected = ranked(values)[0][0] if values else None
    assert aggregate(mode, values, cuts=cuts, order=order) == expected


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 3), max_size=40), CUTS, ORDERS)
def test_the_mode_of_integers(aggregate, values, cuts, order):
    expected = ranked(values)[0][0] if values else None
    assert aggregate(mode_int, values, cuts=cuts, order=order) == expected


@given(TEXTS, st.integers(1, 5), CUTS, ORDERS)
def test_top_values_are_the_most_frequent_with_their_counts(aggregate, values, size, cuts, order):
    found = aggregate(top_values, values, [size] * len(values), cuts=cuts, order=order)
    expected = [{"value": value, "count": count} for value, count in ranked(values)[:size]]
    assert found == (expected if values else None)


@pytest.mark.parametrize("size", [0, -1, 10_001])
def test_a_size_that_is_not_possible_is_named(aggregate, size):
    with pytest.raises(UdfError, match=f"{size} values are not from 1 to 10000"):
        aggregate(top_values, ["a"], [size])


def test_a_size_that_differs_within_a_group_is_named(aggregate):
    for cuts in ([], [1]):
        with pytest.raises(UdfError, match="the number of values differs within one group: 1 and 2"):
            aggregate(top_values, ["a", "b"], [1, 2], cuts=cuts)


def test_row_by_row_is_the_same_as_by_batch(aggregate):
    values = ["b", "a", "b", "c"]
    kind, top = Mode(), TopValues()
    state, top_state = kind.init(), top.init()
    for value in values:
        state, top_state = kind.update(state, value), top.update(top_state, value, 2)
    assert kind.finish(state) == aggregate(mode, values) == "b"
    assert top.finish(top_state) == aggregate(top_values, values, [2] * 4)
