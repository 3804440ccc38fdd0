"""What is killed and when, decided beforehand from a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

T = TypeVar("T")

#: The first epoch, and the last ones, are left in peace, so that the job cannot end before its last kill.
QUIET_EPOCHS = 10

#: Epochs may take somewhat more rows than they should, so that there are fewer of them than planned.
SPARE = 0.05

#: A kill comes at any moment of about three epochs after the one that it waits for.
MAX_DELAY_S = 2.0

#: Of a job's length: many kills then come in the middle of a recovery.
EPOCHS_PER_KILL = 1.6

#: While something is paused, and until a driver that was replaced has ended, the job goes on.
EPOCHS_PER_PAUSE = 20


class Target(StrEnum):
    """What dies by SIGKILL."""

    PYTHON_WORKER = "Python worker"
    EXECUTOR = "executor"
    SPARK_WORKER = "Spark worker"
    DRIVER = "driver"
    DRIVER_JVM = "driver's JVM"


#: The share of each in all kills; the rest are Python workers, the cheapest to replace.
SHARES = {Target.EXECUTOR: 0.25, Target.SPARK_WORKER: 0.15, Target.DRIVER: 0.15, Target.DRIVER_JVM: 0.05}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    target: Target
    #: It waits until this epoch is published.
    after_epoch: int
    #: And then for this long.
    delay_s: float
    #: Chooses among those that could be killed.
    choice: float

    @property
    def deed(self) -> str:
        return f"kill: {self.target}"

    def choose(self, candidates: Sequence[T]) -> T:
        return candidates[int(self.choice * len(candidates))]


def epochs_for(kills: int, pauses: int = 0) -> int:
    """How many epochs a job needs for so many kills and pauses."""
    needed = kills * EPOCHS_PER_KILL + pauses * EPOCHS_PER_PAUSE + quiet_epochs(pauses)
    return int(needed / (1 - SPARE)) + 1


def quiet_epochs(pauses: int = 0) -> int:
    return QUIET_EPOCHS + (2 * EPOCHS_PER_PAUSE if pauses else 0)


def last_moment(epochs: int, pauses: int = 0) -> int:
    """The last epoch of a job of so many after which something may be killed or paused."""
    return int(epochs * (1 - SPARE)) - quiet_epochs(pauses)


def plan_kills(seed: int, kills: int, epochs: int, pauses: int = 0) -> list[Kill]:
    """The kills of a job of so many epochs and pauses, in order: the same for the same arguments."""
    chance = random.Random(seed)
    targets = [target for target, share in SHARES.items() for _ in range(round(share * kills))]
    targets += [Target.PYTHON_WORKER] * (kills - len(targets))
    chance.shuffle(targets)
    moments = sorted(chance.randint(1, last_moment(epochs, pauses)) for _ in range(kills))
    return [
        Kill(target=target, after_epoch=epoch, delay_s=chance.uniform(0, MAX_DELAY_S), choice=chance.random())
        for target, epoch in zip(targets, moments, strict=True)
    ]
