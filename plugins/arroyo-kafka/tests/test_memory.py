"""A source whose rows are taken slowly does not hold more and more of its topic."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from .support.cluster import Cluster

ROOT = Path(__file__).parents[3]
MEGABYTE = 1 << 20
TOPIC_BYTES = 384 * MEGABYTE
#: What librdkafka reads ahead, and as much again for what is under way.
LIMIT_BYTES = 160 * MEGABYTE
GREEDY = {"queued.max.messages.kbytes": "2000000", "queued.min.messages": "1000000"}


@pytest.fixture(scope="module")
def large_topic(cluster: Cluster) -> str:
    """Four partitions, which hold more than anybody should keep in memory."""
    name = "large-for-slow-readers"
    cluster.create(name, partitions=4)
    for partition in range(4):
        values = (os.urandom(MEGABYTE // 2) for _ in range(2 * TOPIC_BYTES // MEGABYTE // 4))
        cluster.produce(name, values, partition=partition)
    return name


@pytest.fixture
def grown(cluster: Cluster, large_topic: str) -> Callable[..., int]:
    """By how many bytes a process grows that reads some rows of the topic, with these settings of its client."""

    def grown(**client: str) -> int:
        module = f"{__package__}.support.reading"
        found = subprocess.run(
            [sys.executable, "-m", module, cluster.bootstrap_servers, large_topic, json.dumps(client)],
            cwd=ROOT,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        return int(found.stdout)

    return grown


def test_what_is_read_ahead_is_bounded(grown: Callable[..., int]) -> None:
    assert grown() < LIMIT_BYTES


def test_a_client_that_reads_ahead_without_bound_is_noticed(grown: Callable[..., int]) -> None:
    """The measurement of the test above would see it."""
    assert grown(**GREEDY) > 2 * LIMIT_BYTES
