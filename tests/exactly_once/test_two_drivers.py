"""Two drivers run one job at once: one result, exact, and whoever lost the job is told so."""

from __future__ import annotations

import os
from collections import Counter

import pytest
from crash_rounds import ROOT, Laboratory, Order
from two_drivers import race
from verdict import check_result

from arroyo_core.state import FencedError

SEED = int(os.environ.get("EXACTLY_ONCE_SEED", "1"))
ROUNDS = int(os.environ.get("EXACTLY_ONCE_RACES", "50"))


@pytest.mark.timeout(900)
def test_two_drivers_of_one_job_give_one_exact_result():
    os.environ["ARROYO_STATE_CACHE"] = "off"
    laboratory = Laboratory("crash-object", Order.PUBLISH_FIRST)
    outcomes: Counter[str] = Counter()
    for seed in range(SEED, SEED + ROUNDS):
        result, disk = race(laboratory, seed)
        for error in result.errors:
            assert error is None or isinstance(error, FencedError), str(result)
        for error in result.fenced:
            assert "owns the job now; this driver must stop" in str(error)
        outcomes[f"{sum(result.finished)} finished, {len(result.fenced)} fenced"] += 1
        if any(result.finished):
            # What a driver stages after its job was taken over and finished is hidden, and stays.
            check_result(disk.files, ROOT, laboratory.tables(disk), laboratory.truth, is_tidy=False)
        else:
            # Both lost the job to each other: whoever comes next finishes it.
            laboratory.recover(disk)
    print(f"\n{ROUNDS} races: {dict(outcomes)}; EXACTLY_ONCE_SEED=n EXACTLY_ONCE_RACES=1 repeats the one with seed n")
    assert outcomes["1 finished, 1 fenced"] > ROUNDS // 4
