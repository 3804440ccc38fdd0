"""`Adversary`: outlives the drivers of a job, and decides by its seed what happens to them."""

from __future__ import annotations

import random
from collections import Counter

from arroyo_core.api import Clock
from arroyo_core.plugin import PluginSet
from arroyo_testing.adversary.attempt import Attempt, AttemptLostError, FetchFailedError
from arroyo_testing.adversary.driver import AdversaryExecutor, AdversaryLanes
from arroyo_testing.adversary.odds import Deed, Odds
from arroyo_testing.lanes import Killed

#: How many frames an attempt that was given up makes at most when it goes on.
_WAKE_STEPS = 12


class Adversary:
    """One run of a job, from its first driver to its last.

    The seed decides everything that it does. Sources have threads of their own: where a task has several of them, the
    order of their rows is for the machine to decide.
    """

    def __init__(self, seed: int, odds: Odds | None = None) -> None:
        self.random = random.Random(seed)
        self.odds = odds or Odds()
        self.deeds: Counter[Deed] = Counter()
        #: Whose calls are being made: an attempt's, or the driver's.
        self.current: Attempt | None = None
        self._is_peaceful = False
        self._sleepers: list[Attempt] = []

    def executor(self, plugins: PluginSet, clock: Clock | None = None) -> AdversaryExecutor:
        """For one driver: its attempts are numbered from the beginning, as those of a new Spark context are."""
        return AdversaryExecutor(self, plugins, clock)

    def lanes(self) -> AdversaryLanes:
        """For one driver."""
        return AdversaryLanes(self)

    def make_peace(self) -> None:
        """Nothing more happens, but that attempts which were given up go on."""
        self._is_peaceful = True

    def close(self) -> None:
        """The job is over: end what is left of its attempts."""
        for attempt in self._sleepers:
            attempt.close()
        self._sleepers.clear()

    def happens(self, chance: float) -> bool:
        return self.random.random() < chance and not self._is_peaceful

    def count(self, deed: Deed) -> None:
        self.deeds[deed] += 1

    def advance(self, attempt: Attempt, steps: int) -> bool:
        """Let an attempt go on; whether it has ended."""
        before, self.current = self.current, attempt
        try:
            return attempt.advance(steps)
        finally:
            self.current = before

    def give_up(self, attempt: Attempt) -> None:
        """Spark counts on it no more: it is dead, or believed to be."""
        if not attempt.is_dead and self.happens(self.odds.sleep):
            self.count(Deed.SLEEP)
            self._sleepers.append(attempt)
        else:
            attempt.close()

    def wake(self) -> None:
        """An attempt that was given up, of this epoch, an earlier one or an earlier driver, goes on for a while."""
        if not self._sleepers or self.random.random() >= self.odds.wake:
            return
        attempt = self._sleepers.pop(self.random.randrange(len(self._sleepers)))
        self.count(Deed.WAKE)
        try:
            if not self.advance(attempt, self.random.randint(1, _WAKE_STEPS)):
                self._sleepers.append(attempt)
                return
            self.count(Deed.END_LATE)
        except (Exception, AttemptLostError, FetchFailedError):
            # Nobody waits for its answer.
            pass
        attempt.close()

    def may_die(self) -> None:
        """Raises `Killed` where the driver is to die."""
        if self.happens(self.odds.kill_driver):
            self.count(Deed.KILL_DRIVER)
            raise Killed

    def at_storage(self) -> None:
        """To be called before a call that changes storage: raises where its process is to be dead instead.

        Attempts are lost and drivers are killed in the middle of what they write.
        """
        attempt = self.current
        if attempt is not None and attempt.is_dead:
            raise AttemptLostError
        if not self.happens(self.odds.die_at_storage):
            return
        if attempt is None:
            self.count(Deed.KILL_DRIVER)
            raise Killed
        attempt.is_dead = True
        self.count(Deed.LOSE_AT_STORAGE)
        raise AttemptLostError
