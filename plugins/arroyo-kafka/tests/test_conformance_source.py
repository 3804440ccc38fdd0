"""The source and the lookup keep the rules of `arroyo_testing.conformance`, with a real broker."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from arroyo_kafka import plugin
from arroyo_testing.conformance import Check, Conformance, LookupCase, NotApplicable, SourceCase

from arroyo_core.api import Registry

from .support.cluster import Cluster
from .support.shared_broker import shared_broker
from .support.sources import SCHEMA, messages


def three_partitions(folder: Path) -> dict[str, Any]:
    """Of which one is empty, and one ends with control records."""
    name = f"c-{uuid.uuid4().hex[:12]}"
    with Cluster(shared_broker().bootstrap_servers) as cluster:
        cluster.create(name, partitions=3)
        cluster.produce(name, messages(range(12)), partition=0)
        cluster.transaction(name, messages(range(12, 20)), partition=2)
    return {
        "bootstrap_servers": shared_broker().bootstrap_servers,
        "topic": name,
        "until": "latest",
        "format": "json",
        "schema": SCHEMA,
        "event_time_field": "at",
        "max_lateness": "1s",
        "metadata": {"partition": "partition", "offset": "offset"},
    }


def bad_ones(folder: Path) -> dict[str, Any]:
    name = f"c-{uuid.uuid4().hex[:12]}"
    with Cluster(shared_broker().bootstrap_servers) as cluster:
        cluster.create(name, partitions=2)
        for partition in range(2):
            values = messages(range(partition * 10, partition * 10 + 8))
            cluster.produce(name, [*values[:3], b"no JSON", None, *values[3:]], partition=partition)
    return {
        "bootstrap_servers": shared_broker().bootstrap_servers,
        "topic": name,
        "until": "latest",
        "format": "json",
        "schema": SCHEMA,
        "bad_data": "dead_letter",
        "dead_letter": str(folder / "dead"),
    }


CITIES = pa.table({"id": pa.array([1, 3], pa.int64()), "city": ["Roma", None]})


def compacted(folder: Path) -> dict[str, Any]:
    """Of each key the last message counts, and a tombstone is none."""
    name = f"c-{uuid.uuid4().hex[:12]}"
    with Cluster(shared_broker().bootstrap_servers) as cluster:
        cluster.create(name, partitions=2, config={"cleanup.policy": "compact"})
        values = [b'{"id": 1, "city": "Rome"}', b'{"id": 2, "city": "Oslo"}', b'{"id": 1, "city": "Roma"}', None]
        cluster.produce(name, values, keys=[b"1", b"2", b"1", b"2"], partition=0)
        cluster.produce(name, [b'{"id": 3, "city": null}'], keys=[b"3"], partition=1)
    return {
        "bootstrap_servers": shared_broker().bootstrap_servers,
        "topic": name,
        "format": "json",
        "schema": [{"name": "id", "type": "int64"}, {"name": "city", "type": "string"}],
    }


def checks() -> list[Check]:
    cases = [
        SourceCase("kafka.source", three_partitions),
        SourceCase("kafka.source", bad_ones, id="kafka.source with bad messages"),
        LookupCase("kafka.lookup", compacted, rows=CITIES),
    ]
    # The sink has its cases in test_sink_conformance.py.
    suite = Conformance("arroyo_kafka.plugin", cases)
    return [check for check in suite.checks() if check.name != "every_operator_has_a_case"]


@pytest.mark.parametrize("check", checks(), ids=str)
def test_conformance(check: Check) -> None:
    if check.skip:
        pytest.skip(check.skip)
    try:
        check.run()
    except NotApplicable as reason:
        pytest.skip(str(reason))


def test_every_operator_has_cases_here_or_with_the_sink() -> None:
    registry = Registry()
    plugin.arroyo_register(registry)
    assert set(registry.constructors) == {"kafka.sink", "kafka.source"}
