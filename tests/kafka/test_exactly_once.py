"""From topic to topic, whatever is killed or paused, the broker too: a consumer sees each result once, and right."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from arroyo_kafka.broker import Broker, running_broker

from arroyo_core.errors import SetupError

from ..chaos.pauses import CLUSTER_TIMEOUTS, TIMEOUTS
from ..integration.servers import standalone_cluster
from .blows import ON_ANY, ON_CLUSTER, epochs_for, plan_blows
from .orders import Orders
from .storm import LOCAL, Storm

#: Half of them on `local[2]`, half on a cluster.
FAULTS = int(os.environ.get("CHAOS_KILLS") or 10)
#: The same in CI every time: whether a commit lands must not depend on chance.
SEED = int(
    os.environ.get("CHAOS_SEED") or (629_987 if os.environ.get("CI") else random.SystemRandom().randrange(1_000_000))
)
REPEAT = f"seed {SEED}, {FAULTS} faults; repeat with: make chaos-kafka KILLS={FAULTS} SEED={SEED}"

#: Two drivers at once have room for their executors: each takes half of the cluster.
SETTINGS = TIMEOUTS | {"spark.cores.max": "2", "spark.executor.cores": "1", "spark.executor.memory": "512m"}


@pytest.fixture
def broker() -> Iterator[Broker]:
    """One that may be killed."""
    with ExitStack() as stack:
        try:
            started = stack.enter_context(running_broker())
        except SetupError as error:
            if os.environ.get("CI"):
                raise
            pytest.skip(f"no Kafka broker: {error}")
        yield started


@pytest.fixture
def show(request: pytest.FixtureRequest):
    """Prints a line on the terminal, also where pytest keeps what tests print."""
    return request.config.pluginmanager.getplugin("terminalreporter").write_line


@pytest.mark.timeout(600 + 60 * FAULTS)
@pytest.mark.parametrize("place", ["local", "cluster"])
def test_a_consumer_of_committed_messages_sees_each_result_once(tmp_path: Path, broker: Broker, show, place: str):
    show(f"\nchaos on {place}: {REPEAT}")
    count = FAULTS // 2 if place == "local" else FAULTS - FAULTS // 2
    blows = plan_blows(f"{place} {SEED}", count, ON_ANY if place == "local" else ON_CLUSTER)
    job = Orders.of_epochs(broker.bootstrap_servers, epochs_for(blows))
    job.produce()
    pipeline = job.write(tmp_path / "job")
    try:
        with ExitStack() as stack:
            cluster, settings = LOCAL, {}
            if place == "cluster":
                cluster = stack.enter_context(standalone_cluster(tmp_path, cores=2, settings=CLUSTER_TIMEOUTS))
                settings = SETTINGS
            storm = Storm(cluster, pipeline, broker, settings)
            outcome = storm.run(blows)
        exact = job.check()
    except BaseException as error:
        error.add_note(f"chaos on {place}: {REPEAT}")
        raise
    happened = ", ".join(f"{number} x {kind}" for kind, number in storm.blows.items())
    show(
        f"chaos on {place}: seed {SEED}: {happened}; {outcome.starts - 1} restarts of the driver, of which "
        f"{outcome.failures} after an error, {outcome.epochs} epochs, {outcome.duration_s:.0f} s; {exact}"
    )
    assert storm.blows.total() == count
