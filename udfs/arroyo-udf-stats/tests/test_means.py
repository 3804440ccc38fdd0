"""Means, beside plain Python, from states that are cut and merged at random."""

import math
import statistics
from datetime import UTC, datetime, timedelta

import pytest
from arroyo_udf_stats.means import Ewma, ewma, geometric_mean, harmonic_mean, weighted_mean
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.errors import UdfError

START = datetime(2024, 1, 1, tzinfo=UTC)
VALUES = st.floats(-1e6, 1e6)
POSITIVE = st.floats(1e-3, 1e6)
CUTS = st.lists(st.integers(0, 30), max_size=4)
ORDERS = st.randoms(use_true_random=False)
SECONDS = st.floats(0, 1000).map(lambda seconds: round(seconds, 6))


def at(seconds):
    return START + timedelta(seconds=seconds)


@given(st.lists(st.tuples(VALUES, SECONDS), min_size=1, max_size=30), st.floats(0.1, 500), CUTS, ORDERS)
def test_a_decayed_mean_weighs_by_the_age_from_the_newest(aggregate, rows, half_life, cuts, order):
    values, seconds = zip(*rows, strict=True)
    weights = [0.5 ** ((max(seconds) - second) / half_life) for second in seconds]
    expected = math.fsum(v * w for v, w in zip(values, weights, strict=True)) / math.fsum(weights)
    times, half_lives = [at(second) for second in seconds], [half_life] * len(rows)
    found = aggregate(ewma, values, times, half_lives, cuts=cuts, order=order)
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_a_value_one_half_life_old_counts_half(aggregate):
    assert aggregate(ewma, [10.0, 40.0], [at(0), at(60)], [60.0, 60.0]) == pytest.approx(30)


def test_values_long_ago_vanish_and_do_not_overflow(aggregate):
    times = [at(0), at(1e9), at(-1e9)]
    assert aggregate(ewma, [5.0, 7.0, 9.0], times, [1e-3] * 3, cuts=[1, 2]) == 7


@pytest.mark.parametrize("half_life", [0.0, -1.0, math.inf, math.nan])
def test_a_half_life_that_is_none_is_named(aggregate, half_life):
    with pytest.raises(UdfError, match=r"the half-life is .*: it must be a positive number of seconds"):
        aggregate(ewma, [1.0], [at(0)], [half_life])


def test_a_half_life_that_differs_within_a_group_is_named(aggregate):
    for cuts in ([], [1]):
        with pytest.raises(UdfError, match=r"the half-life differs within one group: 1\.0 and 2\.0"):
            aggregate(ewma, [1.0, 1.0], [at(0), at(0)], [1.0, 2.0], cuts=cuts)


@given(st.lists(st.tuples(VALUES, POSITIVE | st.just(0.0)), max_size=30), CUTS, ORDERS)
def test_a_weighted_mean(aggregate, rows, cuts, order):
    values, weights = [row[0] for row in rows], [row[1] for row in rows]
    found = aggregate(weighted_mean, values, weights, cuts=cuts, order=order)
    if not sum(weights):
        assert found is None
        return
    assert found == pytest.approx(statistics.fmean(values, weights), rel=1e-6, abs=1e-3)


@pytest.mark.parametrize("weight", [-1.0, math.nan, math.inf])
def test_a_weight_that_is_none_is_named(aggregate, weight):
    with pytest.raises(UdfError, match=f"weight {weight} is not a number from 0"):
        aggregate(weighted_mean, [1.0, 1.0], [1.0, weight])


@given(st.lists(POSITIVE, min_size=1, max_size=30), CUTS, ORDERS)
def test_geometric_and_harmonic_means(aggregate, values, cuts, order):
    found = aggregate(geometric_mean, values, cuts=cuts, order=order)
    assert found == pytest.approx(statistics.geometric_mean(values), rel=1e-9)
    found = aggregate(harmonic_mean, values, cuts=cuts, order=order)
    assert found == pytest.approx(statistics.harmonic_mean(values), rel=1e-9)


@pytest.mark.parametrize("function", [geometric_mean, harmonic_mean])
def test_a_zero_makes_zero_and_a_negative_value_is_named(aggregate, function):
    assert aggregate(function, [0.0, 4.0]) == 0
    assert aggregate(function, [-0.0]) == 0
    with pytest.raises(UdfError, match=r"has no negative values, and got -2\.0"):
        aggregate(function, [1.0, -2.0])


@pytest.mark.parametrize("function", [ewma, geometric_mean, harmonic_mean, weighted_mean])
def test_no_rows_have_no_mean(aggregate, function):
    assert aggregate(function, *[[]] * len(function.parameters)) is None


def test_row_by_row_is_the_same_as_by_batch(aggregate):
    rows = [(1.5, at(3), 10.0), (2.5, at(1), 10.0), (9.0, at(8), 10.0)]
    kind = Ewma()
    state = kind.init()
    for row in rows:
        state = kind.update(state, *row)
    assert kind.finish(state) == pytest.approx(aggregate(ewma, *zip(*rows, strict=True)))
