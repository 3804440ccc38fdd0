"""The kills and pauses of a run follow from its seed, and all of them come before its end."""

from __future__ import annotations

from collections import Counter

import pytest

from .kills import QUIET_EPOCHS, Target, epochs_for, last_moment, plan_kills
from .pauses import CLUSTER_TIMEOUTS, EPOCH_TIMEOUT, LONGEST_S, SHARES, SHORTEST_S, TIMEOUTS, Sleeper, plan_pauses


def test_the_same_seed_gives_the_same_kills_and_another_one_gives_others():
    assert plan_kills(7, 25, 60) == plan_kills(7, 25, 60)
    assert plan_kills(7, 25, 60) != plan_kills(8, 25, 60)


@pytest.mark.parametrize("kills", [25, 300])
def test_every_kind_of_process_is_killed(kills):
    counts = Counter(kill.target for kill in plan_kills(1, kills, epochs_for(kills)))
    assert counts.total() == kills
    assert set(counts) == set(Target)
    assert min(counts.values()) >= kills // 25


@pytest.mark.parametrize("kills", [1, 4, 25, 300])
def test_kills_come_in_order_and_leave_the_last_epochs_in_peace(kills):
    epochs = epochs_for(kills)
    moments = [kill.after_epoch for kill in plan_kills(3, kills, epochs)]
    assert moments == sorted(moments)
    assert moments[0] >= 1
    assert moments[-1] <= last_moment(epochs) <= epochs - QUIET_EPOCHS
    assert last_moment(epochs) >= kills


def test_a_choice_is_always_one_of_the_candidates():
    for kill in plan_kills(5, 200, epochs_for(200)):
        assert kill.choose(["one"]) == "one"
        assert kill.choose([1, 2, 3]) in {1, 2, 3}


def test_the_same_seed_gives_the_same_pauses_and_another_one_gives_others():
    assert plan_pauses(7, 20, 500) == plan_pauses(7, 20, 500)
    assert plan_pauses(7, 20, 500) != plan_pauses(8, 20, 500)


def test_everything_is_paused_and_long_enough():
    pauses = plan_pauses(1, 100, epochs_for(300, 100))
    assert {pause.target for pause in pauses} == set(Sleeper) == set(SHARES)
    assert sum(SHARES.values()) == pytest.approx(1)
    timeouts = [*TIMEOUTS.values(), *CLUSTER_TIMEOUTS.values(), EPOCH_TIMEOUT]
    assert max(int(value.rstrip("s")) for value in timeouts) < SHORTEST_S
    assert all(SHORTEST_S <= pause.duration_s <= LONGEST_S for pause in pauses)


@pytest.mark.parametrize(("kills", "pauses"), [(15, 4), (300, 100), (0, 1)])
def test_pauses_come_in_order_and_leave_the_job_its_end(kills, pauses):
    epochs = epochs_for(kills, pauses)
    moments = [pause.after_epoch for pause in plan_pauses(3, pauses, epochs)]
    assert moments == sorted(moments)
    assert 1 <= moments[0] <= moments[-1] <= last_moment(epochs, pauses) < epochs - QUIET_EPOCHS
    assert all(kill.after_epoch <= last_moment(epochs, pauses) for kill in plan_kills(3, kills, epochs, pauses))
