"""The controller's transitions, one by one, and what holds for any sequence of events."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.runtime.controller import Controller, Policy, replay
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
    Fail,
    Failed,
    Finish,
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
    event_line,
    read_events,
)

POLICY = Policy(interval_ms=1000, keep=3, max_restarts=2, healthy_ms=60_000, seed="job", timeout_ms=600_000)


class Machine:
    """A controller with a clock that ticks once an event."""

    def __init__(self, policy=POLICY):
        self.controller = Controller(policy)
        self.time_ms = 0

    def __call__(self, event, after_ms=1):
        self.time_ms += after_ms
        return self.controller.handle(event, self.time_ms)

    def to_epoch(self, epoch):
        """Everything before `epoch` committed, and `epoch` running."""
        self(Started())
        self(Restored(1))
        for number in range(1, epoch):
            self(accepted(number))
            self(Published(number, needs_commit=True))
            self(Committed(number))
            self(Collected())
        return self


def accepted(epoch, rows=10, duration_ms=1000, is_final=False):
    return EpochAccepted(epoch, rows, duration_ms, is_final)


def failed(lane=Lane.RUN, is_retriable=True):
    return Failed(lane, "it broke", is_retriable)


@pytest.fixture
def machine():
    return Machine()


def test_a_job_restores_before_it_runs(machine):
    assert machine(Started()) == [Restore()]
    assert machine(Restored(7)) == [RunEpoch(7, 1000)]


def test_a_job_that_had_ended_ends_at_once(machine):
    machine(Started())
    assert machine(Restored(7, is_final=True)) == [Finish(Outcome.FINISHED)]
    assert machine.controller.is_ended


def test_the_next_epoch_runs_while_the_last_one_is_published(machine):
    machine.to_epoch(1)
    assert machine(accepted(1)) == [Publish(1), RunEpoch(2, 1000)]
    assert machine(Published(1, needs_commit=True)) == [Commit(1)]
    assert machine(Committed(1)) == []


def test_an_epoch_is_published_only_after_the_one_before_is_committed(machine):
    machine.to_epoch(1)
    machine(accepted(1))
    assert machine(accepted(2)) == []
    assert machine(Published(1, needs_commit=True)) == [Commit(1)]
    assert machine(Committed(1)) == [Publish(2), RunEpoch(3, 1000)]


def test_without_committing_sinks_publication_is_the_end_of_an_epoch(machine):
    machine.to_epoch(1)
    machine(accepted(1))
    machine(accepted(2))
    assert machine(Published(1, needs_commit=False)) == [Publish(2), RunEpoch(3, 1000)]


def test_the_last_epoch_is_committed_before_the_job_finishes(machine):
    machine.to_epoch(1)
    assert machine(accepted(1, is_final=True)) == [Publish(1)]
    assert machine(Published(1, needs_commit=True)) == [Commit(1)]
    assert machine(Committed(1)) == [Finish(Outcome.FINISHED)]


def test_a_discarded_epoch_is_run_again_and_at_last_ends_the_job(machine):
    machine.to_epoch(2)
    for _ in range(POLICY.max_discards):
        assert machine(EpochDiscarded(2, "they disagree")) == [RunEpoch(2, 1000)]
    assert machine(EpochDiscarded(2, "they disagree")) == [Fail("they disagree")]


def test_garbage_is_collected_now_and_then_and_delays_nothing(machine):
    machine.to_epoch(1)
    found = []
    for epoch in range(1, 10):
        machine(accepted(epoch))
        found.append(machine(Published(epoch, needs_commit=False)))
    # Only once: it is still under way.
    assert [instructions for instructions in found if instructions] == [[CollectGarbage()]]
    machine(Collected())
    for epoch in (10, 11):
        machine(accepted(epoch))
        assert machine(Published(epoch, needs_commit=False)) == []
    machine(accepted(12))
    assert machine(Published(12, needs_commit=False)) == [CollectGarbage()]


def test_garbage_is_collected_also_if_every_run_is_short():
    found = []
    for start in range(1, 10, 2):
        machine = Machine()
        machine(Started())
        machine(Restored(start))
        for epoch in (start, start + 1):
            machine(accepted(epoch))
            found += [
                (epoch, item) for item in machine(Published(epoch, needs_commit=False)) if item == CollectGarbage()
            ]
            machine(Collected())
    assert [epoch for epoch, _ in found] == [3, 6, 9]


def test_garbage_that_cannot_be_collected_is_no_failure(machine):
    machine.to_epoch(1)
    assert machine(failed(Lane.COLLECT, is_retriable=False)) == []
    assert not machine.controller.is_ended


def test_an_outage_restores_after_a_while(machine):
    machine.to_epoch(3)
    (timer,) = machine(failed())
    assert timer.reason == "it broke"
    assert 250 <= timer.delay_ms <= 500
    assert machine(TimerFired(timer.number)) == [Restore()]
    assert machine(Restored(3)) == [RunEpoch(3, 1000)]


def test_waits_grow_and_restarts_are_bounded(machine):
    machine.to_epoch(1)
    waits = []
    for _ in range(POLICY.max_restarts):
        (timer,) = machine(failed())
        waits.append(timer.delay_ms)
        machine(TimerFired(timer.number))
        machine(Restored(1))
    assert waits == sorted(waits)
    assert machine(failed()) == [Fail("it broke (given up after 2 restarts)")]


def test_health_resets_the_count_of_restarts(machine):
    machine.to_epoch(1)
    for _ in range(5):
        (timer,) = machine(failed(), after_ms=POLICY.healthy_ms + 1)
        assert timer.delay_ms <= 500
        machine(TimerFired(timer.number))
        machine(Restored(1))


def test_what_a_retry_cannot_mend_fails_at_once(machine):
    machine.to_epoch(1)
    assert machine(failed(is_retriable=False)) == [Fail("it broke")]
    assert machine(accepted(1)) == []


def test_a_failed_publication_gives_up_the_epoch_that_builds_on_it(machine):
    machine.to_epoch(1)
    machine(accepted(1))
    assert machine(failed(Lane.PUBLISH)) == [CancelEpoch()]
    # The cancelled epoch may answer with anything.
    (timer,) = machine(accepted(2))
    assert isinstance(timer, StartTimer)
    assert machine(TimerFired(timer.number)) == [Restore()]


def test_an_epoch_that_fails_because_it_was_given_up_does_not_count(machine):
    machine.to_epoch(1)
    machine(accepted(1))
    machine(Failed(Lane.PUBLISH, "the store is away", is_retriable=True))
    # Whatever a killed task says of itself, the job can go on when the store is back.
    (timer,) = machine(Failed(Lane.RUN, "a task was killed", is_retriable=False))
    assert timer == StartTimer(1, timer.delay_ms, "the store is away", is_restart=True)


def seen(epoch, progress, status="wave 0: 1 of 2 tasks have ended"):
    return EpochSeen(epoch, progress, status)


def test_an_epoch_without_progress_is_given_up_and_the_job_restarts(machine):
    machine.to_epoch(3)
    assert machine(seen(3, "a"), after_ms=60_000) == []
    assert machine(seen(3, "a"), after_ms=599_999) == []
    reason = "epoch 3 made no progress for 10m (checkpoint.timeout): wave 0: 1 of 2 tasks have ended"
    assert machine(seen(3, "a")) == [CancelEpoch(reason)]
    # Once is enough, and what its lane says then means nothing.
    assert machine(seen(3, "a")) == []
    (timer,) = machine(failed(is_retriable=False))
    assert timer == StartTimer(1, timer.delay_ms, reason, is_restart=True)
    machine(TimerFired(1))
    assert machine(Restored(3)) == [RunEpoch(3, 1000)]


def test_an_epoch_that_takes_long_and_moves_is_not_given_up(machine):
    machine.to_epoch(3)
    for number in range(100):
        assert machine(seen(3, str(number // 2)), after_ms=500_000) == []
    assert machine(accepted(3)) == [Publish(3), RunEpoch(4, 1000)]


def test_what_was_seen_of_another_run_says_nothing(machine):
    machine.to_epoch(3)
    machine(seen(3, "a"), after_ms=60_000)
    machine(EpochDiscarded(3, "they disagree"), after_ms=500_000)
    assert machine(seen(3, "a"), after_ms=500_000) == []
    assert machine(seen(2, "a"), after_ms=500_000) == []
    assert machine(seen(3, "b")) == []


def test_nothing_is_given_up_while_nothing_runs(machine):
    machine.to_epoch(1)
    machine(accepted(1, is_final=True))
    for _ in range(3):
        assert machine(seen(1, "a"), after_ms=600_000) == []


def test_an_epoch_that_gets_stuck_again_and_again_ends_the_job(machine):
    """The time in which nothing moved is not health, though it is longer than what counts as that."""
    machine.to_epoch(1)
    for _ in range(POLICY.max_restarts):
        machine(seen(1, "a"), after_ms=60_000)
        assert isinstance(machine(seen(1, "a"), after_ms=600_000)[0], CancelEpoch)
        (timer,) = machine(failed())
        machine(TimerFired(timer.number), after_ms=timer.delay_ms)
        machine(Restored(1))
    machine(seen(1, "a"), after_ms=60_000)
    machine(seen(1, "a"), after_ms=600_000)
    (fail,) = machine(failed())
    assert fail.reason.endswith("1 of 2 tasks have ended (given up after 2 restarts)")
    assert machine.controller.fatal.is_retriable


def test_an_epoch_that_was_healthy_before_it_got_stuck_counts_as_the_first_one(machine):
    machine.to_epoch(1)
    for _ in range(5):
        for number in range(3):
            machine(seen(1, str(number)), after_ms=60_000)
        assert isinstance(machine(seen(1, "2"), after_ms=600_000)[0], CancelEpoch)
        (timer,) = machine(failed())
        assert timer.delay_ms <= 500
        machine(TimerFired(timer.number))
        machine(Restored(1))


def test_a_stop_of_an_epoch_without_progress_ends_the_job(machine):
    machine.to_epoch(1)
    machine(StopRequested(StopMode.CHECKPOINT))
    machine(seen(1, "a"))
    assert isinstance(machine(seen(1, "a"), after_ms=600_000)[0], CancelEpoch)
    assert machine(failed()) == [Restore()]
    assert machine(Restored(1)) == [Finish(Outcome.STOPPED)]


def test_a_job_fails_with_the_cause_and_not_with_what_came_of_it(machine):
    machine.to_epoch(1)
    machine(accepted(1))
    cause = Failed(Lane.PUBLISH, "no permission", is_retriable=False)
    assert machine(cause) == [CancelEpoch()]
    assert machine(Failed(Lane.RUN, "a task was killed", is_retriable=False)) == [Fail("no permission")]
    assert machine.controller.fatal == cause


def test_an_immediate_stop_is_no_failure_whatever_the_epoch_that_was_given_up_says(machine):
    machine.to_epoch(2)
    machine(StopRequested(StopMode.IMMEDIATE))
    assert machine(failed(is_retriable=False)) == [Finish(Outcome.STOPPED)]


def test_a_failed_epoch_lets_the_one_before_it_be_committed(machine):
    machine.to_epoch(1)
    machine(accepted(1))
    assert machine(failed(Lane.RUN, is_retriable=False)) == []
    assert machine(Published(1, needs_commit=True)) == [Commit(1)]
    assert machine(Committed(1)) == [Fail("it broke")]


def test_of_two_failures_the_one_that_cannot_be_mended_counts(machine):
    machine.to_epoch(1)
    machine(accepted(1))
    machine(failed(Lane.RUN))
    assert machine(failed(Lane.PUBLISH, is_retriable=False)) == [Fail("it broke")]


def test_a_failed_restore_is_tried_again(machine):
    machine(Started())
    (timer,) = machine(failed(Lane.PUBLISH))
    assert machine(TimerFired(timer.number)) == [Restore()]


def test_a_stop_ends_the_epoch_and_runs_one_last_one(machine):
    machine.to_epoch(2)
    assert machine(StopRequested(StopMode.CHECKPOINT)) == [EndEpoch()]
    assert machine(accepted(2)) == [Publish(2), RunEpoch(3, 0, StopMode.CHECKPOINT)]
    machine(Published(2, needs_commit=False))
    assert machine(accepted(3, rows=0)) == [Publish(3)]
    assert machine(Published(3, needs_commit=False)) == [CollectGarbage()]
    assert machine(Collected()) == [Finish(Outcome.STOPPED)]


def test_a_rescale_ends_the_epoch_and_the_job_ends_when_that_is_committed(machine):
    machine.to_epoch(2)
    assert machine(RescaleRequested(3)) == [EndEpoch()]
    assert machine(RescaleRequested(4)) == []
    assert machine(accepted(2)) == [Publish(2)]
    assert machine(Published(2, needs_commit=True)) == [Commit(2)]
    assert machine(Committed(2)) == [Finish(Outcome.RESCALED)]


def test_a_rescale_of_a_job_that_waits_for_rows_runs_an_epoch_without_any(machine):
    machine.to_epoch(1)
    machine(accepted(1, rows=0))
    machine(Published(1, needs_commit=False))
    published, waiting = machine(accepted(2, rows=0))
    assert (published, type(waiting)) == (Publish(2), StartTimer)
    assert machine(RescaleRequested(3)) == [RunEpoch(3, 0)]
    machine(Published(2, needs_commit=False))
    assert machine(accepted(3, rows=0)) == [Publish(3)]


def test_an_epoch_that_fails_during_a_rescale_is_run_again_before_it(machine):
    machine.to_epoch(2)
    machine(RescaleRequested(3))
    (timer,) = machine(failed())
    assert machine(TimerFired(timer.number)) == [Restore()]
    assert machine(Restored(2)) == [RunEpoch(2, 0)]
    assert machine(accepted(2)) == [Publish(2)]


def test_a_stop_goes_before_a_rescale_and_so_does_the_end_of_the_data(machine):
    machine.to_epoch(2)
    machine(RescaleRequested(3))
    assert machine(StopRequested(StopMode.CHECKPOINT)) == [EndEpoch()]
    assert machine(accepted(2)) == [Publish(2), RunEpoch(3, 0, StopMode.CHECKPOINT)]
    machine(Published(2, needs_commit=False))
    assert machine(accepted(3, rows=0, is_final=True)) == [Publish(3)]
    assert machine(Published(3, needs_commit=False)) == [CollectGarbage()]
    assert machine(Collected()) == [Finish(Outcome.FINISHED)]


def test_an_immediate_stop_gives_the_epoch_up(machine):
    machine.to_epoch(2)
    assert machine(StopRequested(StopMode.IMMEDIATE)) == [CancelEpoch()]
    assert machine(failed()) == [Finish(Outcome.STOPPED)]


def test_an_immediate_stop_waits_for_what_is_being_committed(machine):
    machine.to_epoch(1)
    machine(accepted(1))
    assert machine(StopRequested(StopMode.IMMEDIATE)) == [CancelEpoch()]
    assert machine(accepted(2)) == []
    assert machine(Published(1, needs_commit=True)) == [Commit(1)]
    assert machine(Committed(1)) == [Finish(Outcome.STOPPED)]


def test_a_second_request_counts_only_if_it_is_more_urgent(machine):
    machine.to_epoch(1)
    assert machine(StopRequested(StopMode.CHECKPOINT)) == [EndEpoch()]
    assert machine(StopRequested(StopMode.GRACEFUL)) == []
    assert machine(StopRequested(StopMode.IMMEDIATE)) == [CancelEpoch()]
    assert machine(StopRequested(StopMode.CHECKPOINT)) == []


def test_a_stop_of_a_job_that_waits_to_restart_completes_a_commit_and_ends_it(machine):
    machine.to_epoch(1)
    machine(failed())
    assert machine(StopRequested(StopMode.CHECKPOINT)) == [Restore()]
    assert machine(Restored(1)) == [Finish(Outcome.STOPPED)]


def test_a_stop_does_not_wait_for_an_outage_to_end(machine):
    machine.to_epoch(1)
    machine(failed())
    machine(StopRequested(StopMode.CHECKPOINT))
    assert machine(failed(Lane.PUBLISH)) == [Finish(Outcome.STOPPED)]


def test_a_commit_that_fails_during_a_stop_is_tried_once_more(machine):
    machine.to_epoch(1)
    machine(StopRequested(StopMode.CHECKPOINT))
    machine(accepted(1))
    machine(Published(1, needs_commit=True))
    assert machine(failed(Lane.PUBLISH)) == [CancelEpoch()]
    assert machine(failed(Lane.RUN)) == [Restore()]
    assert machine(Restored(2)) == [Finish(Outcome.STOPPED)]


def test_a_stop_before_the_start_runs_nothing(machine):
    assert machine(StopRequested(StopMode.CHECKPOINT)) == [Restore()]
    assert machine(Restored(1)) == [Finish(Outcome.STOPPED)]


def test_epochs_without_rows_come_ever_more_seldom(machine):
    machine.to_epoch(1)
    waits = []
    for epoch in range(1, 12):
        instructions = machine(accepted(epoch, rows=0))
        machine(Published(epoch, needs_commit=False))
        machine(Collected())
        timers = [item for item in instructions if isinstance(item, StartTimer)]
        if timers:
            waits.append(timers[0].delay_ms)
            assert machine(TimerFired(timers[0].number)) == [RunEpoch(epoch + 1, 1000)]
    assert waits == [250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000, 10_000, 10_000]
    assert machine(accepted(12)) == [Publish(12), RunEpoch(13, 1000)]


def test_a_stop_ends_the_wait_for_new_rows(machine):
    machine.to_epoch(1)
    for epoch in (1, 2):
        machine(accepted(epoch, rows=0))
        machine(Published(epoch, needs_commit=False))
    assert machine(StopRequested(StopMode.GRACEFUL)) == [RunEpoch(3, 0, StopMode.GRACEFUL)]


def test_sources_get_the_time_that_lets_the_whole_epoch_meet_its_interval(machine):
    machine.to_epoch(1)
    machine(accepted(1, duration_ms=9000))
    source_ms = []
    for epoch in range(2, 10):
        machine(Published(epoch - 1, needs_commit=False))
        instructions = machine(accepted(epoch, duration_ms=400 + (source_ms[-1] if source_ms else 1000)))
        machine(Collected())
        source_ms.append(next(item.source_ms for item in instructions if isinstance(item, RunEpoch)))
    # The first epoch, which was cold, did not count; then 400 ms go to what follows the sources.
    assert source_ms[0] == 714
    assert source_ms[-1] == pytest.approx(600, abs=10)


def test_an_event_log_survives_being_written_down():
    log = [(Started(), 1), (Restored(4), 2), (seen(4, "a"), 3), (failed(), 4), (StopRequested(StopMode.GRACEFUL), 5)]
    lines = [event_line(event, time_ms) for event, time_ms in log]
    assert list(read_events([*lines, '{"event": "Epoch", "epoch": 1}'])) == log


class World:
    """Carries instructions out in any order, and keeps the invariants."""

    def __init__(self, data):
        self.data = data
        self.controller = Controller(POLICY)
        self.work = {}
        self.timer = None
        self.time_ms = 0
        self.published = []
        self.committed = []
        self.accepted = {}
        self.log = []
        self.instructions = []
        self.end = None
        self.is_hurried = False
        self.has_failed_to_restore = False

    def handle(self, event):
        self.time_ms += self.data.draw(st.integers(0, 50_000))
        self.log.append((event, self.time_ms))
        found = self.controller.handle(event, self.time_ms)
        self.instructions += found
        for instruction in found:
            self.carry_out(instruction)

    def carry_out(self, instruction):
        match instruction:
            case Restore() | Publish() | Commit():
                self.begin(Lane.PUBLISH, instruction)
            case RunEpoch():
                last = self.published[-1] if self.published else 0
                assert instruction.epoch in (last + 1, last + 2)
                self.begin(Lane.RUN, instruction)
            case CollectGarbage():
                self.begin(Lane.COLLECT, instruction)
            case StartTimer():
                self.timer = instruction.number
            case Finish() | Fail():
                assert not self.work.keys() - {Lane.COLLECT}
                self.end = instruction

    def begin(self, lane, instruction):
        assert lane not in self.work
        assert self.end is None
        self.work[lane] = instruction

    def outcome(self, lane):
        instruction = self.work.pop(lane)
        if self.data.draw(st.integers(0, 9)) == 0:
            self.has_failed_to_restore |= isinstance(instruction, Restore)
            return Failed(lane, "broken", self.data.draw(st.integers(0, 3)) > 0)
        match instruction:
            case Restore():
                last = self.published[-1] if self.published else 0
                if last and self.committed[-1:] != [last]:
                    self.committed.append(last)
                return Restored(last + 1, is_final=self.accepted.get(last, False))
            case RunEpoch(epoch):
                if self.data.draw(st.integers(0, 9)) == 0:
                    return EpochDiscarded(epoch, "disagree")
                self.accepted[epoch] = self.data.draw(st.integers(0, 15)) == 0
                return accepted(epoch, rows=self.data.draw(st.integers(0, 1)), is_final=self.accepted[epoch])
            case Publish(epoch):
                # Whatever came before is published and committed: a restart has one commit to complete.
                assert epoch == (self.published[-1] if self.published else 0) + 1
                assert self.committed == self.published
                self.published.append(epoch)
                return Published(epoch, needs_commit=True)
            case Commit(epoch):
                self.committed.append(epoch)
                return Committed(epoch)
            case CollectGarbage():
                return Collected()

    def step(self):
        choices = sorted(self.work)
        if self.timer is not None:
            choices.append("timer")
        if self.data.draw(st.integers(0, 40)) == 0:
            choices.append("stop")
        if self.data.draw(st.integers(0, 40)) == 0:
            choices.append("rescale")
        if Lane.RUN in self.work:
            choices.append("look")
        assert choices, "the job waits for nothing"
        choice = self.data.draw(st.sampled_from(choices))
        if choice == "timer":
            number, self.timer = self.timer, None
            self.handle(TimerFired(number))
        elif choice == "look":
            epoch = self.work[Lane.RUN].epoch
            self.time_ms += 400_000
            self.handle(seen(epoch, self.data.draw(st.sampled_from("ab"))))
        elif choice == "rescale":
            self.handle(RescaleRequested(self.data.draw(st.integers(1, 4))))
        elif choice == "stop":
            mode = self.data.draw(st.sampled_from(StopMode))
            self.is_hurried |= mode is StopMode.IMMEDIATE
            self.handle(StopRequested(mode))
        else:
            self.handle(self.outcome(choice))


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_whatever_happens_epochs_are_published_in_order_and_each_is_committed_once(data):
    world = World(data)
    world.handle(Started())
    for _ in range(120):
        if world.end is not None:
            break
        world.step()
    assert world.committed == sorted(set(world.committed))
    # Another driver goes on at once: it has nothing to complete.
    if world.end == Finish(Outcome.RESCALED):
        assert world.committed == world.published != []
    # A hurried stop, or one during an outage, leaves the commit to the next start.
    if isinstance(world.end, Finish) and not world.is_hurried and not world.has_failed_to_restore:
        assert world.committed == world.published
    assert replay(POLICY, world.log) == world.instructions
