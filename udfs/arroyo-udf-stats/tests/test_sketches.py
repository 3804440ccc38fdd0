"""Sketches stay within their error, and depend on the rows alone, not on how they were cut."""

import math
import random

import numpy as np
import pytest
from arroyo_udf_stats.distinct import (
    HllSketch,
    hll_distinct,
    hll_distinct_int,
    hll_estimate,
    hll_merge,
    hll_sketch,
    hll_sketch_int,
)
from arroyo_udf_stats.quantiles import SUMMARY_RANKS, TdigestQuantile, tdigest_quantile, tdigest_summary
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.errors import UdfError

TEXTS = st.lists(st.text(max_size=3), max_size=100)
CUTS = st.lists(st.integers(0, 100), max_size=4)
ORDERS = st.randoms(use_true_random=False)


@given(TEXTS, CUTS, ORDERS)
def test_few_distinct_values_are_counted_exactly(aggregate, values, cuts, order):
    assert aggregate(hll_distinct, values, cuts=cuts, order=order) == len(set(values))


def test_an_empty_text_is_a_value_of_its_own(aggregate):
    assert aggregate(hll_distinct, ["", "\0", "a", ""]) == 3


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=100), CUTS, ORDERS)
def test_few_distinct_integers_are_counted_exactly(aggregate, values, cuts, order):
    assert aggregate(hll_distinct_int, values, cuts=cuts, order=order) == len(set(values))


@pytest.mark.parametrize("distinct", [300, 5_000, 50_000])
def test_many_distinct_values_are_counted_within_five_percent(aggregate, distinct):
    values = [f"user-{place}" for place in range(distinct)]
    assert aggregate(hll_distinct, values) == pytest.approx(distinct, rel=0.05)
    assert aggregate(hll_distinct_int, range(distinct)) == pytest.approx(distinct, rel=0.05)


@pytest.mark.parametrize("distinct", [150, 1_000, 10_000])
def test_the_count_does_not_depend_on_batches_nor_on_order(aggregate, distinct):
    values, order = [f"{place}" for place in range(distinct)], random.Random(7)
    found = set()
    for parts in (1, 2, 7, 30):
        order.shuffle(values)
        cuts = [order.randrange(distinct) for _ in range(parts - 1)]
        found.add(aggregate(hll_distinct, values + values[:50], cuts=cuts, order=order))
    assert len(found) == 1


def test_sketches_are_kept_merged_and_read_later(aggregate):
    monday = aggregate(hll_sketch, [f"{place}" for place in range(100)])
    tuesday = aggregate(hll_sketch, [f"{place}" for place in range(50, 150)])
    assert hll_estimate(aggregate(hll_merge, [monday, tuesday])) == 150
    assert hll_estimate(monday) == 100
    numbers = aggregate(hll_sketch_int, range(10))
    assert hll_estimate(aggregate(hll_merge, [numbers, numbers], cuts=[1])) == 10
    assert [aggregate(function, []) for function in (hll_sketch, hll_merge)] == [None, None]


def test_a_sketch_of_the_library_itself_is_read(aggregate):
    import datasketches

    sketch = datasketches.hll_sketch(10, datasketches.HLL_4)
    for place in range(20):
        sketch.update(f"{place}")
    own = aggregate(hll_sketch, [f"{place}" for place in range(10, 30)])
    assert hll_estimate(aggregate(hll_merge, [sketch.serialize_compact(), own])) == 30


@pytest.mark.parametrize("data", [b"x", b"no sketch at all", bytes(40)])
def test_what_is_no_sketch_is_named(aggregate, data):
    with pytest.raises(ValueError, match="are no HLL sketch"):
        hll_estimate(data)
    with pytest.raises(UdfError, match="are no HLL sketch"):
        aggregate(hll_merge, [data, data])


def test_a_state_of_a_sketch_is_small(aggregate):
    assert len(aggregate(hll_sketch, [f"{place}" for place in range(50_000)])) < 5_000


@pytest.mark.parametrize("spread", ["normal", "exponential", "uniform"])
@pytest.mark.parametrize("cuts", [[], [100, 3_000, 3_001, 17_000]])
def test_a_quantile_has_the_rank_that_was_asked_for_within_one_percent(aggregate, spread, cuts):
    values = getattr(np.random.default_rng(5), spread)(size=20_000)
    for rank in (0.0, 0.01, 0.25, 0.5, 0.9, 0.99, 1.0):
        found = aggregate(tdigest_quantile, values, [rank] * len(values), cuts=cuts)
        assert np.mean(values < found) == pytest.approx(rank, abs=0.01)


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=50), CUTS, ORDERS)
def test_quantiles_lie_between_the_exact_ends_and_in_order(aggregate, values, cuts, order):
    summary = aggregate(tdigest_summary, values, cuts=cuts, order=order)
    assert (summary["count"], summary["min"], summary["max"]) == (len(values), min(values), max(values))
    inner = [summary[name] for name in SUMMARY_RANKS]
    assert [min(values), *inner, max(values)] == sorted([min(values), *inner, max(values)])
    ends = [aggregate(tdigest_quantile, values, [rank] * len(values), cuts=cuts) for rank in (0.0, 1.0)]
    assert ends == [min(values), max(values)]


def test_the_same_rows_give_the_same_quantiles(aggregate):
    values = np.random.default_rng(1).normal(size=5_000)
    first, second = (aggregate(tdigest_summary, values, cuts=[1_000, 2_500]) for _ in range(2))
    assert first == second


def test_nan_does_not_count(aggregate):
    values = [math.nan, 1.0, 2.0, 3.0]
    assert aggregate(tdigest_summary, values)["count"] == 3
    assert aggregate(tdigest_quantile, values, [0.5] * 4) == 2
    assert aggregate(tdigest_quantile, [math.nan], [0.5]) is None
    assert aggregate(tdigest_quantile, values, [0.5] * 4, cuts=[1]) == 2


def test_no_rows_have_no_quantile_and_no_distinct_values(aggregate):
    assert aggregate(tdigest_quantile, [], []) is None
    assert aggregate(tdigest_summary, []) is None
    assert aggregate(hll_distinct, []) == 0


@pytest.mark.parametrize("rank", [-0.1, 1.1, 95.0, math.nan])
def test_a_rank_that_is_none_is_named(aggregate, rank):
    with pytest.raises(UdfError, match=f"rank {rank} is not from 0 to 1"):
        aggregate(tdigest_quantile, [1.0], [rank])


def test_a_rank_that_differs_within_a_group_is_named(aggregate):
    with pytest.raises(UdfError, match=r"the rank differs within one group: 0\.5 and 0\.9"):
        aggregate(tdigest_quantile, [1.0, 2.0], [0.5, 0.9], cuts=[1])


def test_row_by_row_is_the_same_as_by_batch(aggregate):
    kind, quantile = HllSketch(), TdigestQuantile()
    state, ranked = kind.init(), quantile.init()
    for place in range(20):
        state, ranked = kind.update(state, f"{place % 7}"), quantile.update(ranked, float(place), 0.5)
    assert hll_estimate(state) == 7
    assert quantile.finish(ranked) == pytest.approx(10, abs=1)
