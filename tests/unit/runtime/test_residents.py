"""Operators that live on serve the next epoch of the same driver, and no other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from arroyo_core.api import ConstructedOperator
from arroyo_core.runtime.context import Budget
from arroyo_core.runtime.request import EpochRequest
from arroyo_core.runtime.residents import Resident, Residents

LAST = EpochRequest(
    epoch=7, min_epoch=1, timestamp_us=0, budget=Budget(), storage_url="memory://x", generation=2, incarnation="a1"
)


class Operator:
    closed = 0

    def on_close(self, final_message, ctx, collector):
        assert final_message is None
        self.closed += 1


@pytest.fixture
def operator():
    return Operator()


@pytest.fixture
def residents(operator):
    residents = Residents()
    resident = Resident(ConstructedOperator(operator=operator), tables=None, ctx=None)
    residents.keep({"node": resident}, LAST.token, {})
    return residents


def test_they_serve_the_next_epoch(residents, operator):
    assert [found.constructed.operator for found in residents.take(replace(LAST, epoch=8)).values()] == [operator]
    assert operator.closed == 0


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"epoch": 7}, id="the same epoch again"),
        pytest.param({"epoch": 9}, id="a later epoch"),
        pytest.param({"epoch": 3}, id="an earlier epoch"),
        pytest.param({"epoch": 8, "generation": 3}, id="another driver"),
        pytest.param({"epoch": 8, "incarnation": "b2"}, id="another incarnation"),
        pytest.param({"epoch": 8, "is_first": True}, id="the first epoch of a driver"),
    ],
)
def test_they_are_closed_before_any_other_epoch(residents, operator, other):
    assert not residents.take(replace(LAST, **other))
    assert operator.closed == 1
    residents.close()
    assert operator.closed == 1


def test_they_are_taken_once(residents, operator):
    residents.take(replace(LAST, epoch=8))
    # The epoch failed: nobody brought them back, and whoever ran them has closed what has to be.
    assert not residents.take(replace(LAST, epoch=8))
    residents.close()
    assert operator.closed == 0
