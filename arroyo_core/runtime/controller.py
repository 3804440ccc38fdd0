"""The epoch controller: a pure machine. Events in, instructions out; no clock, no I/O, no threads.

While epoch n + 1 runs, epoch n is published and committed: its state files are complete, so n + 1
can build on them, and if n turns out unpublishable n + 1 is given up with it. Epoch n + 1 itself is
published only after n is committed, so that a restart has at most one commit to complete.

    Restore -> RunEpoch 1 -> Publish 1 -> Commit 1 -> CollectGarbage
                             RunEpoch 2 ------------> Publish 2 -> ...

The same events with the same times always give the same instructions: the log of a run is a test.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from arroyo_core.api.units import format_duration_us
from arroyo_core.runtime.events import (
    CancelEpoch,
    Collected,
    CollectGarbage,
    Commit,
    Committed,
    EndEpoch,
    EpochAccepted,
    EpochDiscarded,
    EpochSeen,
    Event,
    Fail,
    Failed,
    Finish,
    Instruction,
    Lane,
    Outcome,
    Publish,
    Published,
    RescaleRequested,
    Restore,
    Restored,
    RunEpoch,
    Started,
    StartTimer,
    StopMode,
    StopRequested,
    TimerFired,
)
from arroyo_core.runtime.pacing import derive_backoff_ms, derive_idle_ms, derive_source_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What the controller is free to decide within."""

    interval_ms: int
    #: Garbage is collected once in this many epochs.
    keep: int = 10
    #: How often a job restarts from its last checkpoint by itself; health in between resets the count.
    max_restarts: int = 20
    healthy_ms: int = 120_000
    #: How often an epoch that senders and receivers disagree on is run again before the job fails.
    max_discards: int = 5
    #: An epoch in which nothing has moved for so long is given up.
    timeout_ms: int = 600_000
    #: Spreads waits of different jobs.
    seed: str = ""


class Controller:
    """Decides what happens next. `handle` is called with each event, in order, by one thread."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        #: No epoch can run before state is restored: at first, and after a failure.
        self._is_lost = True
        self._next_epoch = 0
        #: The epoch in the run lane.
        self._running: RunEpoch | None = None
        #: It was given up: whatever its lane answers, a failure to be cancelled included, means nothing.
        self._is_cancelled = False
        #: What was seen last of the running epoch, and since when nothing else.
        self._progress: str | None = None
        self._unmoved_since_ms = 0
        #: When the running epoch was last known to be healthy: something moved, or it began.
        self._moved_ms = 0
        #: An accepted epoch that waits for the publish lane. While there is one, no epoch starts.
        self._accepted: int | None = None
        #: The publish lane restores, publishes or commits.
        self._is_publishing = False
        self._is_collecting = False
        self._timers = 0
        #: Nothing starts before this timer fires, but for a stop.
        self._awaited: int | None = None
        #: Nothing starts while this is set, and when all lanes are quiet it is dealt with.
        self._failure: Failed | None = None
        self._fatal: Failed | None = None
        self._failures = 0
        self._failed_ms = 0
        self._discards = 0
        self._empty_epochs = 0
        self._idle_ms = 0
        self._source_ms = policy.interval_ms
        #: The first epoch after a restore pays for a cold start: its time says nothing.
        self._is_warm = False
        self._stop: StopMode | None = None
        #: The next epoch that is accepted is the last one with this parallelism, unless a stop comes first.
        self._is_rescaling = False
        #: Set when the last epoch is accepted; the job ends when it is committed.
        self._outcome: Outcome | None = None
        self._is_ended = False
        self._time_ms = 0

    @property
    def is_ended(self) -> bool:
        """After `Finish` or `Fail`; later events change nothing."""
        return self._is_ended

    @property
    def fatal(self) -> Failed | None:
        """What `Fail` was for: of several failures the one that counted."""
        return self._fatal

    def handle(self, event: Event, time_ms: int) -> list[Instruction]:
        """What to do now. `time_ms` is a clock that never goes back."""
        if self._is_ended:
            return []
        self._time_ms = time_ms
        return [*self._on_event(event), *self._advance()]

    def _on_event(self, event: Event) -> list[Instruction]:
        match event:
            case Started():
                pass
            case Restored():
                self._on_restored(event)
            case EpochAccepted():
                self._on_accepted(event)
            case EpochDiscarded():
                self._on_discarded(event)
            case EpochSeen():
                return self._on_seen(event)
            case Published(epoch=epoch, needs_commit=True):
                return [Commit(epoch)]
            case Published() | Committed():
                self._is_publishing = False
                return self._collect(event.epoch)
            case Collected():
                self._is_collecting = False
            case StopRequested():
                return self._on_stop(event.mode)
            case RescaleRequested():
                return self._on_rescale()
            case Failed():
                return self._on_failed(event)
            case TimerFired():
                if event.number == self._awaited:
                    self._awaited = None
        return []

    def _on_restored(self, event: Restored) -> None:
        self._is_publishing = self._is_lost = self._is_warm = False
        self._next_epoch = event.next_epoch
        if event.is_final:
            self._outcome = Outcome.FINISHED
        elif self._stop is not None:
            self._outcome = Outcome.STOPPED

    def _on_accepted(self, event: EpochAccepted) -> None:
        ran = self._running
        if self._end_run() or ran is None:
            return
        self._accepted = event.epoch
        self._next_epoch = event.epoch + 1
        self._discards = 0
        self._empty_epochs = 0 if event.rows else self._empty_epochs + 1
        self._idle_ms = derive_idle_ms(self._empty_epochs)
        if event.rows and self._is_warm:
            self._source_ms = derive_source_ms(
                interval_ms=self._policy.interval_ms, source_ms=ran.source_ms, duration_ms=event.duration_ms
            )
        self._is_warm = True
        if event.is_final:
            self._outcome = Outcome.FINISHED
        elif ran.stop is not None:
            self._outcome = Outcome.STOPPED
        elif self._is_rescaling and self._stop is None:
            self._outcome = Outcome.RESCALED

    def _on_discarded(self, event: EpochDiscarded) -> None:
        if self._end_run():
            return
        self._discards += 1
        if self._discards > self._policy.max_discards:
            self._failure = Failed(Lane.RUN, event.reason, is_retriable=False)

    def _on_stop(self, mode: StopMode) -> list[Instruction]:
        # A second request counts only if it is more urgent.
        if self._stop is StopMode.IMMEDIATE or (self._stop is not None and mode is not StopMode.IMMEDIATE):
            return []
        self._stop = mode
        if self._running is None:
            return []
        if mode is StopMode.IMMEDIATE:
            return self._cancel()
        return [EndEpoch()] if self._running.stop is None else []

    def _on_rescale(self) -> list[Instruction]:
        is_first, self._is_rescaling = not self._is_rescaling, True
        is_asked = is_first and self._running is not None and self._stop is None and not self._is_cancelled
        return [EndEpoch()] if is_asked else []

    def _on_seen(self, event: EpochSeen) -> list[Instruction]:
        """Give an epoch up in which nothing moves: as a failure of it, of which its lane does not know."""
        ran = self._running
        if ran is None or ran.epoch != event.epoch or self._is_cancelled:
            return []
        if event.progress != self._progress:
            # What is seen first may have been there from the beginning.
            self._moved_ms = self._moved_ms if self._progress is None else self._time_ms
            self._progress, self._unmoved_since_ms = event.progress, self._time_ms
            return []
        unmoved_ms = self._time_ms - self._unmoved_since_ms
        if unmoved_ms < self._policy.timeout_ms:
            return []
        reason = (
            f"epoch {event.epoch} made no progress for {format_duration_us(self._policy.timeout_ms * 1_000)} "
            f"(checkpoint.timeout): {event.status}"
        )
        self._note_failure(Failed(Lane.RUN, reason, is_retriable=True), healthy_until_ms=self._moved_ms)
        return self._cancel(reason)

    def _on_failed(self, event: Failed) -> list[Instruction]:
        if event.lane is Lane.COLLECT:
            # Whatever could not be deleted is found again the next time.
            self._is_collecting = False
            return []
        if event.lane is Lane.RUN:
            if self._end_run():
                return []
        else:
            self._is_publishing = False
        if self._failure is not None and not self._failure.is_retriable:
            return []
        self._note_failure(event, healthy_until_ms=self._time_ms)
        # An epoch that builds on one that cannot be published is worth nothing.
        return self._cancel() if self._running is not None else []

    def _note_failure(self, failure: Failed, *, healthy_until_ms: int) -> None:
        """Failures at one time count once; health before them makes the count begin again."""
        if self._failure is None:
            if healthy_until_ms - self._failed_ms > self._policy.healthy_ms:
                self._failures = 0
            self._failures += 1
            self._failed_ms = self._time_ms
        self._failure = failure

    def _cancel(self, reason: str = "") -> list[Instruction]:
        self._is_cancelled = True
        return [CancelEpoch(reason)]

    def _end_run(self) -> bool:
        """The run lane answered; whether its epoch had been given up."""
        is_cancelled, self._is_cancelled, self._running = self._is_cancelled, False, None
        return is_cancelled

    def _advance(self) -> list[Instruction]:
        """Start whatever can start now."""
        is_quiet = self._running is None and not self._is_publishing
        if self._failure is not None:
            return self._settle(self._failure) if is_quiet else []
        if self._stop is StopMode.IMMEDIATE:
            return self._finish(Outcome.STOPPED) if is_quiet else []
        if self._is_lost:
            return self._restore()
        out = self._publish()
        if self._outcome is None:
            return out + self._run()
        is_done = is_quiet and not out and not self._is_collecting
        return self._finish(self._outcome) if is_done else out

    def _restore(self) -> list[Instruction]:
        # A stop does not wait, but it completes a commit that was interrupted.
        if self._is_publishing or (self._awaited is not None and self._stop is None):
            return []
        self._is_publishing = True
        return [Restore()]

    def _publish(self) -> list[Instruction]:
        if self._accepted is None or self._is_publishing:
            return []
        epoch, self._accepted, self._is_publishing = self._accepted, None, True
        return [Publish(epoch)]

    def _run(self) -> list[Instruction]:
        if self._running is not None or self._accepted is not None:
            return []
        if self._stop is not None:
            return self._begin(RunEpoch(self._next_epoch, 0, self._stop))
        if self._is_rescaling:
            # Nothing is read: it is there to end at, also for a driver that has not come to an epoch yet.
            return self._begin(RunEpoch(self._next_epoch, 0))
        if self._awaited is not None:
            return []
        if self._idle_ms:
            idle_ms, self._idle_ms = self._idle_ms, 0
            return [self._wait(idle_ms, "the sources have nothing new")]
        return self._begin(RunEpoch(self._next_epoch, self._source_ms))

    def _begin(self, instruction: RunEpoch) -> list[Instruction]:
        self._running = instruction
        self._progress = None
        self._unmoved_since_ms = self._moved_ms = self._time_ms
        return [instruction]

    def _settle(self, failure: Failed) -> list[Instruction]:
        """Nothing is under way any more: restart after a while, or give up."""
        self._failure = self._accepted = None
        if not failure.is_retriable:
            return self._fail(failure, failure.reason)
        if self._stop is StopMode.IMMEDIATE or (self._stop is not None and self._is_lost):
            return self._finish(Outcome.STOPPED)
        if self._failures > self._policy.max_restarts:
            return self._fail(failure, f"{failure.reason} (given up after {self._policy.max_restarts} restarts)")
        self._is_lost = True
        self._outcome = None
        if self._stop is not None:
            return self._restore()
        delay_ms = derive_backoff_ms(self._failures, seed=self._policy.seed)
        return [self._wait(delay_ms, failure.reason, is_restart=True)]

    def _collect(self, epoch: int) -> list[Instruction]:
        # By the number, not by a count since the start: a job may always be started for a few epochs only.
        if epoch % self._policy.keep or self._is_collecting:
            return []
        self._is_collecting = True
        return [CollectGarbage()]

    def _wait(self, delay_ms: int, reason: str, *, is_restart: bool = False) -> StartTimer:
        self._timers += 1
        self._awaited = self._timers
        return StartTimer(self._timers, delay_ms, reason, is_restart)

    def _finish(self, outcome: Outcome) -> list[Instruction]:
        self._is_ended = True
        return [Finish(outcome)]

    def _fail(self, failure: Failed, reason: str) -> list[Instruction]:
        self._is_ended, self._fatal = True, failure
        return [Fail(reason)]


def replay(policy: Policy, log: Iterable[tuple[Event, int]]) -> list[Instruction]:
    """The instructions that a log of events and times led to."""
    controller = Controller(policy)
    return [instruction for event, time_ms in log for instruction in controller.handle(event, time_ms)]
