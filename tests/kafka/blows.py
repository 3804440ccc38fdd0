"""What happens to a job and to its broker, and when, decided beforehand from a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ..chaos.kills import MAX_DELAY_S, Kill, Target
from ..chaos.pauses import LONGEST_S, SHORTEST_S, Pause, Sleeper

#: Of the job's length: it goes on while something is paused.
EPOCHS_PER_KILL = 6
EPOCHS_PER_PAUSE = 30
#: The second driver works while the first one sleeps, and until it has ended.
EPOCHS_PER_REPLACEMENT = 120
#: The end is left in peace, so that the job cannot end before the last blow.
QUIET_EPOCHS = 30
MOST_SUBTASKS = 4


class Event(StrEnum):
    """What no kill or pause of a process of the job is."""

    BROKER_DIES = "the broker is killed, and started again"
    BROKER_SLEEPS = "the broker is paused"
    RESCALE = "the driver is killed, and goes on with other parallelism"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blow:
    target: Event
    after_epoch: int
    delay_s: float
    #: Of an outage, without the time in which the broker starts.
    duration_s: float
    #: Of a job that is rescaled.
    parallelism: int

    @property
    def deed(self) -> str:
        if self.target is Event.RESCALE:
            return f"{self.target}: {self.parallelism}"
        return f"{self.target} for {self.duration_s:.0f} s"


Kind = Event | Target | Sleeper
AnyBlow = Kill | Pause | Blow

#: Each of these comes at least once, where there are five blows or more.
ALWAYS: Sequence[Kind] = [
    Event.BROKER_DIES,
    Event.BROKER_SLEEPS,
    Event.RESCALE,
    Target.PYTHON_WORKER,
    Sleeper.REPLACED_DRIVER,
]
ON_ANY: Sequence[Kind] = [*ALWAYS, Target.DRIVER, Target.DRIVER_JVM, Sleeper.PYTHON_WORKER, Sleeper.DRIVER]
ON_CLUSTER: Sequence[Kind] = [
    *ON_ANY,
    Target.EXECUTOR,
    Target.SPARK_WORKER,
    Sleeper.EXECUTOR,
    Sleeper.HOST,
    Sleeper.SPARK_WORKER,
]


def plan_blows(seed: int | str, count: int, kinds: Sequence[Kind]) -> list[AnyBlow]:
    """So many blows, in order: the same for the same arguments."""
    chance = random.Random(seed)
    chosen = [*ALWAYS[:count], *chance.choices(kinds, k=max(0, count - len(ALWAYS)))]
    chance.shuffle(chosen)
    blows, epoch = [], 1
    for kind in chosen:
        blows.append(_blow(kind, epoch + chance.randint(0, EPOCHS_PER_KILL // 2), chance))
        epoch += _epochs_of(kind)
    return blows


def epochs_for(blows: Sequence[AnyBlow]) -> int:
    """How many epochs a job needs for all of them."""
    return sum(_epochs_of(blow.target) for blow in blows) + QUIET_EPOCHS


def _epochs_of(kind: Kind) -> int:
    if kind is Sleeper.REPLACED_DRIVER:
        return EPOCHS_PER_REPLACEMENT
    return EPOCHS_PER_PAUSE if isinstance(kind, Sleeper) else EPOCHS_PER_KILL


def _blow(kind: Kind, epoch: int, chance: random.Random) -> AnyBlow:
    delay_s, duration_s = chance.uniform(0, MAX_DELAY_S), chance.uniform(SHORTEST_S, LONGEST_S)
    if isinstance(kind, Target):
        return Kill(target=kind, after_epoch=epoch, delay_s=delay_s, choice=chance.random())
    if isinstance(kind, Sleeper):
        return Pause(target=kind, after_epoch=epoch, delay_s=delay_s, duration_s=duration_s, choice=chance.random())
    return Blow(
        target=kind,
        after_epoch=epoch,
        delay_s=delay_s,
        duration_s=duration_s,
        parallelism=chance.randint(1, MOST_SUBTASKS),
    )
