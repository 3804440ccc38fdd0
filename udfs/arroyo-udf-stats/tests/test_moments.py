"""Shape and trend, beside exact fractions, from states that are cut and merged at random."""

import statistics
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from arroyo_udf_stats.moments import Skewness, TrendPerS, kurtosis, skewness, trend_per_s
from hypothesis import given
from hypothesis import strategies as st

NUMBERS = st.integers(-1000, 1000).map(float)
CUTS = st.lists(st.integers(0, 30), max_size=4)
ORDERS = st.randoms(use_true_random=False)


def central(values, power):
    numbers = [Fraction(value) for value in values]
    mean = sum(numbers) / len(numbers)
    return sum((number - mean) ** power for number in numbers) / len(numbers)


@given(st.lists(NUMBERS, min_size=1, max_size=30), CUTS, ORDERS)
def test_skewness_and_kurtosis_equal_exact_fractions(aggregate, values, cuts, order):
    found = [aggregate(function, values, cuts=cuts, order=order) for function in (skewness, kurtosis)]
    if len(set(values)) == 1:
        assert found == [None, None]
        return
    second = central(values, 2)
    expected = [float(central(values, 3)) / float(second) ** 1.5, float(central(values, 4) / second**2) - 3]
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_a_shift_of_all_values_changes_nothing(aggregate):
    values = [1.0, 2.0, 2.0, 3.0, 10.0]
    shifted = [value + 1e9 for value in values]
    for function in (skewness, kurtosis):
        assert aggregate(function, shifted, cuts=[2]) == pytest.approx(aggregate(function, values), rel=1e-6)


@given(
    st.lists(st.tuples(NUMBERS, st.integers(0, 10**9)), min_size=1, max_size=30),
    st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),
    CUTS,
    ORDERS,
)
def test_a_trend_equals_linear_regression(aggregate, rows, start, cuts, order):
    values = [row[0] for row in rows]
    times = [start + timedelta(microseconds=row[1]) for row in rows]
    found = aggregate(trend_per_s, values, times, cuts=cuts, order=order)
    if len(set(times)) == 1:
        assert found is None
        return
    numbers_us = [Fraction(row[1]) for row in rows]
    mean_us, mean = sum(numbers_us) / len(rows), sum(map(Fraction, values)) / len(rows)
    together = sum((t - mean_us) * (Fraction(v) - mean) for t, v in zip(numbers_us, values, strict=True))
    slope = together / sum((t - mean_us) ** 2 for t in numbers_us) * 10**6
    assert found == pytest.approx(float(slope), rel=1e-6, abs=1e-6 * statistics.pstdev(values) + 1e-12)


def test_a_straight_line_has_its_own_slope(aggregate):
    times = [datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=10 * place) for place in range(50)]
    values = [7 - 0.25 * 10 * place for place in range(50)]
    assert aggregate(trend_per_s, values, times, cuts=[7, 20]) == pytest.approx(-0.25)


@pytest.mark.parametrize("function", [kurtosis, skewness, trend_per_s])
def test_no_rows_have_no_shape(aggregate, function):
    assert aggregate(function, *[[]] * len(function.parameters)) is None


def test_row_by_row_is_the_same_as_by_batch(aggregate):
    values = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0]
    times = [datetime(2024, 1, 1, 0, 0, place, tzinfo=UTC) for place in range(6)]
    kind = Skewness()
    state = kind.init()
    for value in values:
        state = kind.update(state, value)
    assert kind.finish(state) == pytest.approx(aggregate(skewness, values))
    trend = TrendPerS()
    state = trend.init()
    for row in zip(values, times, strict=True):
        state = trend.update(state, *row)
    assert trend.finish(state) == pytest.approx(aggregate(trend_per_s, values, times))
