"""Spark as adversary: whatever it does to a job, the output is that of an undisturbed one.

`make adversary SEED=n SEEDS=1` repeats the round of seed n, and `make adversary SEEDS=5000` makes many.
"""

from __future__ import annotations

import gc
import os
import random
from collections import Counter

import pytest
from arroyo_testing.adversary import Deed

from arroyo_core.runtime import steps

from .cases import cases
from .rounds import Round, run_round, share_rounds

SEEDS = int(os.environ.get("ADVERSARY_SEEDS") or 40)
#: The same in CI every time, as Hypothesis has it.
SEED = int(
    os.environ.get("ADVERSARY_SEED") or (585_090 if os.environ.get("CI") else random.SystemRandom().randrange(10**6))
)

#: A long run says after so many rounds how far it is.
TELL = 100

#: With fewer rounds, some deed may not have come up.
ENOUGH = 40

#: An attempt that is lost in the middle leaves files open, as a process does that is killed.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def _lost_attempts_end_here():
    """What they left open is found within the test, which ignores it, not when pytest ends, which would fail."""
    yield
    gc.collect()


@pytest.fixture
def show(request):
    """Prints a line on the terminal, also where pytest keeps what tests print."""
    return request.config.pluginmanager.getplugin("terminalreporter").write_line


@pytest.mark.timeout(600 + 30 * SEEDS)
def test_whatever_spark_does_the_output_is_as_if_it_had_not(show):
    seeds = range(SEED, SEED + SEEDS)
    show(f"\nadversary: {SEEDS} seeds from {SEED} on; repeat with: make adversary SEED={SEED} SEEDS={SEEDS}")
    rounds = []
    for found in share_rounds(seeds):
        rounds.append(found)
        if found.problems:
            show(str(found))
        if len(rounds) % TELL == 0:
            show(f"adversary: {len(rounds):,} rounds, up to seed {found.seed}")
    show(f"adversary: {told(rounds)}")
    assert [found.seed for found in rounds if found.problems] == []
    if SEEDS >= ENOUGH:
        assert set(total(rounds)) == set(Deed), "some of what may happen never did"


def total(rounds: list[Round]) -> Counter[Deed]:
    return sum((found.deeds for found in rounds), Counter())


def told(rounds: list[Round]) -> str:
    deeds = ", ".join(f"{number:,} {deed}" for deed, number in total(rounds).most_common())
    drivers = sum(found.drivers for found in rounds)
    return f"{len(rounds):,} rounds of {len({found.case for found in rounds})} pipelines, {drivers:,} drivers: {deeds}"


def test_a_job_that_accepts_whatever_comes_is_found_out(monkeypatch):
    """Without the check that senders and receivers agree, mixed attempts lose rows or double them."""
    monkeypatch.setattr(steps, "accept", lambda plan, epoch, reports: None)
    names = list(cases())
    place = names.index("golden updating_aggregate")
    seeds = range(place, 60 * len(names), len(names))
    problem = next((found for seed in seeds if (found := run_round(seed)).problems), None)
    assert problem is not None
    assert "rows too many or too few" in problem.problems[0]
    assert f"make adversary SEED={problem.seed} SEEDS=1" in str(problem)


def test_a_seed_decides_what_happens():
    first, second = run_round(2), run_round(2)
    assert (first.deeds, first.drivers, first.problems) == (second.deeds, second.drivers, second.problems)
