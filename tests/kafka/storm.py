"""Runs a job through kills and pauses of its processes and of its broker, and through rescales, to its end."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from arroyo_kafka.broker import Broker

from ..chaos.rampage import Rampage
from ..chaos.supervisor import Asleep
from ..integration.processes import Process
from ..integration.servers import Cluster
from .blows import AnyBlow, Blow, Event, Kind

#: What librdkafka says when one of its own assertions fails, before it ends the process.
ASSERTION = re.compile(r"rdkafka\w*\.[ch]:\d+: \w+: Assertion .* failed")

#: Where the driver has executors and workers in its own process.
LOCAL = Cluster(url="local[2]", workers=[])


class Storm(Rampage):
    """One run."""

    def __init__(
        self, cluster: Cluster, pipeline: Path, broker: Broker, settings: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(cluster, pipeline, settings)
        self._broker = broker
        self.blows: Counter[Kind] = Counter()

    def _do(self, planned: AnyBlow) -> None:
        self.blows[planned.target] += 1
        if not isinstance(planned, Blow):
            super()._do(planned)
            return
        self._wait_for_moment(planned)
        match planned.target:
            case Event.BROKER_DIES:
                self._broker.kill()
                self._pass(planned.duration_s)
                self._broker.start()
            case Event.BROKER_SLEEPS:
                self._broker.pause()
                self._pass(planned.duration_s)
                self._broker.resume()
            case Event.RESCALE:
                self._supervisor.rescale(planned.parallelism)

    def _of_workers(self) -> list[Process]:
        return super()._of_workers() if self._cluster.workers else self._supervisor.processes()

    def _ended_rightly(self, asleep: Asleep) -> bool:
        # Requests whose timeouts passed in its sleep can trip librdkafka itself: a kill like any other.
        return super()._ended_rightly(asleep) or bool(ASSERTION.search(asleep.log.read_text(errors="replace")))

    def _pass(self, seconds: float) -> None:
        """Time in which the broker is away: the job must live with it."""
        due = time.monotonic() + seconds
        self._wait("the broker's return", lambda: time.monotonic() >= due)
