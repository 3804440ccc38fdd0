"""The faults of a run follow from its seed, come before its end, and the answer it is measured by notices harm."""

from __future__ import annotations

from collections import Counter

import pytest

from .blows import ALWAYS, ON_ANY, ON_CLUSTER, epochs_for, plan_blows
from .orders import KEYS, Orders


def test_the_same_seed_gives_the_same_blows_and_another_one_gives_others():
    assert plan_blows(7, 20, ON_CLUSTER) == plan_blows(7, 20, ON_CLUSTER)
    assert plan_blows(7, 20, ON_CLUSTER) != plan_blows(8, 20, ON_CLUSTER)


@pytest.mark.parametrize("count", [5, 20, 100])
def test_the_broker_the_job_and_its_size_are_always_among_them(count):
    blows = plan_blows(1, count, ON_ANY)
    assert len(blows) == count
    assert set(ALWAYS) <= {blow.target for blow in blows} <= set(ON_ANY)


@pytest.mark.parametrize("count", [1, 5, 100])
def test_blows_come_in_order_and_before_the_end(count):
    blows = plan_blows(3, count, ON_CLUSTER)
    moments = [blow.after_epoch for blow in blows]
    assert moments == sorted(moments)
    assert 1 <= moments[0] <= moments[-1] < epochs_for(blows)


def test_the_answer_has_every_order_in_one_window():
    job = Orders(servers="", count=5000)
    windows = job.expected()
    assert sum(orders for _, _, orders, _ in windows) == 5000
    assert sum(total for _, _, _, total in windows) == sum(range(5000))
    assert {key for key, *_ in windows} == set(range(KEYS))


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lambda found: found - Counter(list(found)[:1]), "1 windows are missing"),
        (lambda found: found + Counter(list(found)[:1]), "1 are too many"),
    ],
)
def test_a_lost_window_and_one_that_comes_twice_are_noticed(harm, words):
    job = Orders(servers="", count=2000)
    assert job.compare(job.expected()) == "320 windows of 2000 orders: exact"
    with pytest.raises(AssertionError, match=words):
        job.compare(harm(job.expected()))
