"""What a driver has of Spark and of its threads, while an adversary has both."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING

from arroyo_core.api import Clock, SystemClock
from arroyo_core.pipeline.plan import Plan
from arroyo_core.plugin import PluginSet
from arroyo_core.proto import exchange_pb2 as pb
from arroyo_core.runtime.events import Event
from arroyo_core.runtime.request import EpochRequest
from arroyo_testing.adversary.odds import Deed
from arroyo_testing.adversary.scheduler import EpochScheduler
from arroyo_testing.lanes import InlineLanes

if TYPE_CHECKING:
    from arroyo_testing.adversary.adversary import Adversary

#: An epoch that was run so often is left in peace: a job may give up one that never comes right.
_TRIES = 3


class AdversaryExecutor:
    """Runs epochs as `LocalExecutor` does, with all that may happen to them on Spark."""

    def __init__(self, adversary: Adversary, plugins: PluginSet, clock: Clock | None) -> None:
        self._adversary = adversary
        self._plugins = plugins
        self._clock = clock or SystemClock()
        self._attempts = itertools.count()
        self._tries: Counter[int] = Counter()

    def run_epoch(self, plan: Plan, request: EpochRequest) -> list[pb.ChainReport]:
        self._tries[request.epoch] += 1
        if self._tries[request.epoch] > 1:
            self._adversary.count(Deed.REPEAT_EPOCH)
        scheduler = EpochScheduler(
            self._adversary,
            plan,
            request,
            plugins=self._plugins,
            clock=self._clock,
            attempts=self._attempts,
            is_peaceful=self._tries[request.epoch] > _TRIES,
        )
        return scheduler.run()

    def cancel(self) -> None:
        """An epoch that runs in this process runs to its end; what it came to is ignored."""


class AdversaryLanes(InlineLanes):
    """Does one thing after the other, in any order that threads could have; a driver may die at each event."""

    def __init__(self, adversary: Adversary) -> None:
        super().__init__()
        self._adversary = adversary

    def next_event(self) -> Event:
        adversary = self._adversary
        adversary.wake()
        adversary.may_die()
        self._order = tuple(adversary.random.sample(self._order, len(self._order)))
        event = super().next_event()
        # What was done is done, and the driver does not come to know of it.
        adversary.may_die()
        return event
