"""What is paused, when and for how long, decided beforehand from a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from .kills import MAX_DELAY_S, last_moment

T = TypeVar("T")

#: Longer than every timeout below.
SHORTEST_S, LONGEST_S = 8.0, 13.0

#: Of the driver and its executors; by default a pause would have to take minutes.
TIMEOUTS = {
    "spark.network.timeout": "6s",
    "spark.network.timeoutInterval": "2s",
    "spark.executor.heartbeatInterval": "1s",
    "spark.executor.heartbeat.maxFailures": "5",
}

#: Of the master and its workers: when a worker counts as lost.
CLUSTER_TIMEOUTS = {"spark.worker.timeout": "5"}

#: Of the job: when an epoch without progress is cancelled.
EPOCH_TIMEOUT = "7s"


class Sleeper(StrEnum):
    """What stands still by SIGSTOP, and goes on by SIGCONT."""

    PYTHON_WORKER = "Python worker"
    EXECUTOR = "executor"
    HOST = "executor and its Python workers"
    SPARK_WORKER = "Spark worker"
    DRIVER = "driver"
    DRIVER_PYTHON = "driver without its JVM"
    DRIVER_JVM = "driver's JVM"
    #: A second driver takes the job over meanwhile.
    REPLACED_DRIVER = "driver that is replaced"


#: The share of each in all pauses.
SHARES = {
    Sleeper.PYTHON_WORKER: 0.15,
    Sleeper.EXECUTOR: 0.15,
    Sleeper.HOST: 0.15,
    Sleeper.SPARK_WORKER: 0.1,
    Sleeper.DRIVER: 0.1,
    Sleeper.DRIVER_PYTHON: 0.05,
    Sleeper.DRIVER_JVM: 0.05,
    Sleeper.REPLACED_DRIVER: 0.25,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    target: Sleeper
    #: It waits until this epoch is published.
    after_epoch: int
    #: And then for this long.
    delay_s: float
    duration_s: float
    #: Chooses among those that could be paused.
    choice: float

    @property
    def deed(self) -> str:
        return f"pause for {self.duration_s:.0f} s: {self.target}"

    def choose(self, candidates: Sequence[T]) -> T:
        return candidates[int(self.choice * len(candidates))]


def plan_pauses(seed: int, pauses: int, epochs: int) -> list[Pause]:
    """The pauses of a job of so many epochs, in order: the same for the same arguments."""
    chance = random.Random(f"pauses {seed}")
    targets = [target for target, share in SHARES.items() for _ in range(int(share * pauses))]
    targets += chance.choices(list(SHARES), list(SHARES.values()), k=pauses - len(targets))
    chance.shuffle(targets)
    moments = sorted(chance.randint(1, last_moment(epochs, pauses)) for _ in range(pauses))
    return [
        Pause(
            target=target,
            after_epoch=epoch,
            delay_s=chance.uniform(0, MAX_DELAY_S),
            duration_s=chance.uniform(SHORTEST_S, LONGEST_S),
            choice=chance.random(),
        )
        for target, epoch in zip(targets, moments, strict=True)
    ]
