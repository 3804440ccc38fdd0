"""Runs the job of examples/orders through kills of its driver, until it has read all and is asked to end."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

from ..chaos.kills import MAX_DELAY_S, Kill, Target
from ..chaos.pauses import Pause
from ..chaos.rampage import Rampage
from ..kafka.storm import LOCAL
from .trade import checkpoints

#: Epochs between a kill and the next one, at most.
MOST_EPOCHS = 3
#: Between two looks at tables.
LOOK_S = 1.0


def plan_kills(seed: int, kills: int) -> list[Kill]:
    """The same for the same arguments; `after_epoch` counts from the kill before."""
    chance = random.Random(seed)
    return [
        Kill(
            target=Target.DRIVER,
            after_epoch=chance.randint(1, MOST_EPOCHS),
            delay_s=chance.uniform(0, MAX_DELAY_S),
            choice=chance.random(),
        )
        for _ in range(kills)
    ]


class Siege(Rampage):
    """One run, on local Spark: the driver dies with its JVM and its Python workers."""

    def __init__(
        self,
        pipeline: Path,
        *,
        has_begun: Callable[[], bool],
        end_trade: Callable[[], None],
        has_caught_up: Callable[[], bool],
    ) -> None:
        """`end_trade` is called after the last kill; then the job must catch up, and is asked to end."""
        super().__init__(LOCAL, pipeline)
        self._has_begun = has_begun
        self._end_trade = end_trade
        self._has_caught_up = has_caught_up

    def _finish(self) -> None:
        self._end_trade()
        self._wait("the job to catch up", self._look)
        self._supervisor.request_end()
        super()._finish()

    def _look(self) -> bool:
        time.sleep(LOOK_S)
        return self._has_caught_up()

    def _wait_for_moment(self, planned: Kill | Pause) -> None:
        if self._outcome.kills:
            # The first one may come before the first order; making a slot takes its time in a busy database.
            self._wait("the first orders", self._has_begun, may_finish=False)
        first = self._epoch()
        self._wait("an epoch to kill in", lambda: self._epoch() >= first + planned.after_epoch, may_finish=False)
        due = time.monotonic() + planned.delay_s
        self._wait("the moment", lambda: time.monotonic() >= due, may_finish=False)

    def _epoch(self) -> int:
        return max(checkpoints(self._folder).list_epochs(), default=0)
