"""Whatever the network between live workers does, the output is as if it had not happened.

`LIVE_NETWORK_SEEDS=3000 pytest tests/unit/runtime/live/test_network.py` is a long hunt (`make live-network`).
"""

from __future__ import annotations

import os
from collections import Counter

import pytest
from arroyo_testing.live import live_executor
from arroyo_testing.network import Fault, FaultyNetwork

FIRST = int(os.environ.get("LIVE_NETWORK_SEED") or 1)
SEEDS = int(os.environ.get("LIVE_NETWORK_SEEDS") or 20)
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


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_every_row_comes_once_whatever_the_network_does(lab, seed):
    network = FaultyNetwork(seed, rate=0.004)
    executor = live_executor(lab.plugins, network)
    try:
        result = lab.run(NODES, executor=executor, parallelism=3, checkpoint={"interval": "1h", "rows": 12})
    finally:
        executor.close()
    assert result.is_finished
    assert lab.trace.numbers() == Counter(dict.fromkeys(range(COUNT), 2))


@pytest.mark.parametrize("fault", Fault)
def test_each_fault_happens_and_is_overcome(lab, fault, monkeypatch):
    """By the first seed by which it happens: threads decide which connection has which number."""
    for seed in range(1, 50):
        network = FaultyNetwork(seed, rate=0.05 if fault is Fault.LOST else 0.02)
        chosen = network.choose
        monkeypatch.setattr(
            network, "choose", lambda *args, of=chosen: found if (found := of(*args)) is fault else None
        )
        executor = live_executor(lab.plugins, network)
        checkpoint = {"interval": "1h", "rows": 12}
        try:
            lab.run(NODES, executor=executor, name=f"lab{seed}", parallelism=3, checkpoint=checkpoint)
        finally:
            executor.close()
        assert lab.trace.numbers() == Counter(dict.fromkeys(range(COUNT), 2 * seed))
        if network.faults[fault]:
            return
    pytest.fail(f"no message was {fault}")
