"""A broker for all tests, and topics on it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest
from arroyo_kafka.broker import Broker
from arroyo_kafka.open_consumers import open_consumers
from hypothesis import settings

from .support.cluster import Cluster
from .support.shared_broker import shared_broker
from .support.sources import Sources

# Two cores, shared: the time of an example says nothing.
settings.register_profile("shared", deadline=None, max_examples=40)
settings.load_profile("shared")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        # Suites of the conformance kit have no fixtures: they ask for the broker themselves.
        if "broker" in getattr(item, "fixturenames", ()) or "conformance" in item.path.name:
            item.add_marker("server")


@pytest.fixture(scope="session")
def broker() -> Broker:
    """A real broker, for all tests that leave it as it is."""
    return shared_broker()


@pytest.fixture(scope="session")
def cluster(broker: Broker) -> Iterator[Cluster]:
    """What tests do with topics of that broker."""
    with Cluster(broker.bootstrap_servers) as cluster:
        yield cluster


@pytest.fixture
def topic(cluster: Cluster) -> Callable[..., str]:
    """Makes topics with names of their own: `topic(partitions=3, **{"cleanup.policy": "compact"})`."""

    def make(partitions: int = 1, **config: str) -> str:
        name = f"t-{uuid.uuid4().hex[:12]}"
        cluster.create(name, partitions=partitions, config=config)
        return name

    return make


@pytest.fixture
def sources(broker: Broker) -> Iterator[Sources]:
    """Makes sources that read that broker: `sources(topic=name, until="latest").run_all()`."""
    made = Sources(broker.bootstrap_servers)
    yield made
    made.close()
    open_consumers.close_all()
