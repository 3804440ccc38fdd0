"""The adversary does what Spark may do, and no more: what is right stays right, and what is not is found out."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from arroyo_testing.adversary import NO_ODDS, Adversary, AttemptLostError, Deed, Odds
from arroyo_testing.adversary.attempt import Attempt
from arroyo_testing.lanes import Killed

from arroyo_core.runtime import steps

COUNT = 60
NODES = [
    {"id": "rows", "operator": "test.rows", "config": {"count": COUNT, "batch": 2}},
    {"id": "totals", "operator": "test.totals", "inputs": ["rows"]},
    {"id": "sink", "operator": "test.sink", "inputs": ["totals"]},
]
TOTALS = Counter({key: sum(range(key, COUNT, 5)) for key in range(5)})
#: An epoch of few rows is over in few turns.
OFTEN = Odds(kill_driver=0.01, lose_output=0.5)


@pytest.fixture
def totals_of(lab):
    """Runs the job to its end, through all its drivers; what its sink committed at last."""

    def run(adversary: Adversary) -> Counter[int]:
        lab.folder = f"{lab.folder}-again"
        lab.trace.committed.clear()
        for _ in range(100):
            job = lab.job(
                NODES,
                executor=adversary.executor(lab.plugins),
                lanes=adversary.lanes(),
                parallelism=2,
                checkpoint={"interval": "1h", "rows": 20},
            )
            try:
                assert job.run().is_finished
                break
            except Killed:
                continue
        adversary.close()
        # An epoch may be committed again, to the same effect.
        epochs = dict(lab.trace.committed)
        return sum((Counter({row["key"]: row["n"]}) for rows in epochs.values() for row in rows), Counter())

    return run


def test_without_odds_nothing_happens(totals_of):
    adversary = Adversary(1, NO_ODDS)
    assert totals_of(adversary) == TOTALS
    assert adversary.deeds == Counter()


def test_whatever_happens_the_totals_are_right(totals_of):
    deeds: Counter[Deed] = Counter()
    for seed in range(12):
        adversary = Adversary(seed, OFTEN)
        assert totals_of(adversary) == TOTALS, f"seed {seed}: {adversary.deeds}"
        deeds += adversary.deeds
    # No storage is watched here.
    assert set(deeds) == set(Deed) - {Deed.LOSE_AT_STORAGE}


def test_mixed_attempts_are_found_out_where_nobody_checks(totals_of, monkeypatch):
    monkeypatch.setattr(steps, "accept", lambda plan, epoch, reports: None)
    assert any(totals_of(Adversary(seed, OFTEN)) != TOTALS for seed in range(12))


def test_a_seed_decides_everything(totals_of):
    runs = []
    for _ in range(2):
        adversary = Adversary(7, OFTEN)
        totals_of(adversary)
        runs.append(adversary.deeds)
    assert runs[0] == runs[1]
    assert runs[0]


def test_a_dead_attempt_changes_nothing_in_storage_any_more(totals_of):
    adversary = Adversary(3, replace(NO_ODDS, die_at_storage=1))
    with pytest.raises(Killed):
        adversary.at_storage()
    adversary.current = dead = Attempt(0, 0, 0, (frame for frame in ()))
    for _ in range(2):
        with pytest.raises(AttemptLostError):
            adversary.at_storage()
    assert dead.is_dead
    assert adversary.deeds == {Deed.KILL_DRIVER: 1, Deed.LOSE_AT_STORAGE: 1}
