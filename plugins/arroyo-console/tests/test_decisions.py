from __future__ import annotations

import pytest
from arroyo_console.supervision.decisions import GREATEST_PAUSE_S, HEALTHY_S, End, after_end
from arroyo_console.values import State


def _end(code, *, lasted_s=1.0, is_finished=False, is_asked=False):
    return End(exit_code=code, lasted_s=lasted_s, is_finished=is_finished, is_asked=is_asked)


@pytest.mark.parametrize(
    ("end", "state"),
    [
        (_end(0, is_finished=True), State.FINISHED),
        (_end(0, is_asked=True), State.STOPPED),
        (_end(None, is_asked=True), State.STOPPED),
        (_end(0), State.STOPPED),
        (_end(130), State.STOPPED),
        (_end(1), State.RESTARTING),
        (_end(5), State.RESTARTING),
        (_end(None), State.RESTARTING),
        (_end(2), State.FAILED),
        (_end(3), State.FAILED),
        (_end(4), State.FAILED),
    ],
)
def test_what_becomes_of_a_job_follows_from_how_it_ended(end, state):
    decision = after_end(end, failures=0, max_restarts=3)
    assert decision.state is state
    assert decision.reason


def test_pauses_grow_and_the_number_of_restarts_in_a_row_is_limited():
    pauses, failures = [], 0
    for _ in range(9):
        decision = after_end(_end(None), failures=failures, max_restarts=9)
        pauses.append(decision.pause_s)
        failures = decision.failures
    assert pauses[:4] == [1.0, 2.0, 4.0, 8.0]
    assert max(pauses) == GREATEST_PAUSE_S
    assert after_end(_end(None), failures=failures, max_restarts=9).state is State.FAILED


def test_failures_before_a_healthy_run_do_not_count():
    decision = after_end(_end(1, lasted_s=HEALTHY_S), failures=9, max_restarts=3)
    assert (decision.state, decision.failures) == (State.RESTARTING, 1)
