"""Whatever the network between live workers does, the output is as if it had not happened.

`LIVE_NETWORK_SEEDS=3000` is a long hunt (`make live-network`), `LIVE_NETWORK_MESSAGES=all` does each of four things to
each message of a run (`make live-messages`).
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import closing

import pytest
from arroyo_testing.live import live_executor
from arroyo_testing.network import EVERYWHERE, Fault, FaultyNetwork, Place, SeededNetwork, SingleFault, SlowPeer

from arroyo_core.runtime.live.wire import DRIVER_NUMBER

FIRST = int(os.environ.get("LIVE_NETWORK_SEED") or 1)
SEEDS = int(os.environ.get("LIVE_NETWORK_SEEDS") or 20)
#: How many messages something happens to, of those between two ends; all of them where it says so.
MESSAGES = os.environ.get("LIVE_NETWORK_MESSAGES") or "2"
#: Threads may send in another order each time, so that a run may end before a message at the end of another one.
TRIES = 3
WORKERS = 3
ENDS = (DRIVER_NUMBER, *range(WORKERS))
LINKS = [(sender, receiver) for sender in ENDS for receiver in ENDS if sender != receiver]
COUNT = 60
#: A union, a diamond and two shuffles; some operators live on, and some do not.
NODES = [
    {"id": "rows", "operator": "test.rows", "config": {"count": COUNT}},
    {"id": "left", "operator": "test.passing", "inputs": ["rows"], "config": {"keys": ["key"], "lives_on": True}},
    {"id": "right", "operator": "test.passing", "inputs": ["rows"], "config": {"keys": ["n"]}},
    {
        "id": "both",
        "operator": "test.passing",
        "inputs": ["left", "right"],
        "config": {"keys": ["n"], "lives_on": True},
    },
    {"id": "rows_out", "operator": "test.sink", "inputs": ["both"]},
]


class Runs:
    """One job after the other, each over a network of its own; all rows must come out of each of them, once."""

    def __init__(self, lab):
        self._lab = lab
        self._count = 0

    def over(self, network, what=""):
        self._count += 1
        with closing(live_executor(self._lab.plugins, network)) as executor:
            result = self._lab.run(
                NODES,
                executor=executor,
                name=f"lab{self._count}",
                parallelism=WORKERS,
                checkpoint={"interval": "1h", "rows": 12},
            )
        assert result.is_finished, what
        assert self._lab.trace.numbers() == Counter(dict.fromkeys(range(COUNT), 2)), what
        self._lab.trace.committed.clear()


@pytest.fixture
def runs(lab):
    return Runs(lab)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_every_row_comes_once_whatever_the_network_does(runs, seed):
    runs.over(SeededNetwork(seed, rate=0.004))


@pytest.mark.parametrize("fault", Fault)
def test_each_fault_happens_and_is_overcome(runs, fault, monkeypatch):
    """By the first seed by which it happens."""
    for seed in range(1, 50):
        network = SeededNetwork(seed, rate=0.05 if fault is Fault.LOST else 0.02)
        chosen = network.choose
        monkeypatch.setattr(
            network, "choose", lambda *args, of=chosen: found if (found := of(*args)) is fault else None
        )
        runs.over(network)
        if network.faults[fault]:
            return
    pytest.fail(f"no message was {fault}")


@pytest.fixture(scope="module")
def sent():
    """How many messages the ends have sent to each other in a run without faults; one run for all tests."""
    return {}


@pytest.mark.parametrize("fault", EVERYWHERE)
@pytest.mark.parametrize(("sender", "receiver"), LINKS)
def test_every_row_comes_once_whichever_message_something_happens_to(runs, sent, sender, receiver, fault):
    if not sent:
        network = FaultyNetwork()
        runs.over(network)
        sent |= network.sent
    count = sent[sender, receiver]
    missed = 0
    for number in chosen(count, EVERYWHERE.index(fault) + LINKS.index((sender, receiver))):
        place = Place(sender, receiver, number)
        for _ in range(TRIES):
            network = SingleFault(place, fault)
            runs.over(network, f"{place} of {count} was {fault}")
            if network.faults[fault]:
                break
        else:
            missed += 1
    assert missed <= max(1, count // 10), f"{missed} of {count} messages were never sent again"


def chosen(count, turn):
    """The messages between two ends: all, or so many at the same distance; others for each turn."""
    if MESSAGES == "all":
        return range(count)
    size = min(count, int(MESSAGES))
    return [int((place + turn % len(EVERYWHERE) / len(EVERYWHERE)) * count / size) for place in range(size)]


@pytest.mark.parametrize("number", [DRIVER_NUMBER, 1])
def test_every_row_comes_once_from_and_to_a_peer_that_is_slow(runs, number):
    """Its messages take longer than a whole epoch of the others would without it."""
    network = SlowPeer(number, latency_s=0.05)
    runs.over(network)
    assert network.sent[number, 0]
