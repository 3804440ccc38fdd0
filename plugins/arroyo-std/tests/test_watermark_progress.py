"""The decisions behind std.watermark, without operators."""

from __future__ import annotations

from itertools import pairwise

import pytest
from arroyo_std.watermark_progress import StoredProgress, WatermarkProgress, restore_progress
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.api import END_OF_TIME_US, Watermark


def stored(watermark_us, *, parallelism=2, is_idle=False, sent_us=None):
    return StoredProgress(
        parallelism=parallelism, watermark_us=watermark_us, sent_us=sent_us, is_idle=is_idle, quiet_us=7
    )


def fresh(period_us=0, idle_time_us=None):
    return WatermarkProgress(None, period_us=period_us, idle_time_us=idle_time_us, now_us=0)


def test_an_unchanged_parallelism_goes_on_where_each_subtask_stopped():
    state = {0: stored(10), 1: stored(90, sent_us=80)}
    assert restore_progress(state, task_index=1, parallelism=2) == state[1]


@pytest.mark.parametrize("parallelism", [1, 3])
def test_another_parallelism_starts_from_the_least_watermark(parallelism):
    restored = restore_progress({0: stored(10), 1: stored(90)}, task_index=0, parallelism=parallelism)
    assert restored is not None
    assert (restored.watermark_us, restored.sent_us, restored.quiet_us) == (10, None, 0)


def test_after_a_rescale_nothing_is_promised_while_one_old_subtask_had_no_watermark():
    assert restore_progress({0: stored(None), 1: stored(90)}, task_index=0, parallelism=1) is None


def test_after_a_rescale_idle_subtasks_do_not_count():
    state = {0: stored(10, is_idle=True), 1: stored(90), 2: stored(None, is_idle=True)}
    restored = restore_progress(state, task_index=0, parallelism=1)
    assert restored is not None
    assert restored.watermark_us == 90


def test_after_a_rescale_of_idle_subtasks_all_are_idle_at_the_least_of_their_watermarks():
    state = {0: stored(10, is_idle=True), 1: stored(90, is_idle=True), 2: stored(None, is_idle=True)}
    restored = restore_progress(state, task_index=0, parallelism=1)
    assert restored is not None
    assert (restored.watermark_us, restored.is_idle, restored.quiet_us) == (10, True, 7)


def test_without_state_there_is_nothing_to_restore():
    assert restore_progress({}, task_index=0, parallelism=1) is None


@given(times=st.lists(st.none() | st.integers(-(10**18), 10**18)), period_us=st.integers(0, 10**17))
def test_the_watermark_never_goes_back_and_reaches_the_greatest_time_at_the_barrier(times, period_us):
    progress = fresh(period_us)
    sent_us = [each.event_time_us for time in times for each in progress.observe(time, now_us=0)]
    assert all(later - earlier > period_us for earlier, later in pairwise(sent_us))
    known = [min(time, END_OF_TIME_US - 1) for time in times if time is not None]
    assert progress.current() == ([Watermark.event_time(max(known))] if known else [])


@given(times=st.lists(st.integers(0, 1000), min_size=1), cut=st.integers(0, 20))
def test_storing_and_restoring_changes_nothing(times, cut):
    whole, first = fresh(50), fresh(50)
    expected = [whole.observe(time, now_us=0) for time in times]
    seen = [first.observe(time, now_us=0) for time in times[:cut]]
    state = first.store(parallelism=1, now_us=0)
    second = WatermarkProgress(state, period_us=50, idle_time_us=None, now_us=0)
    assert seen + [second.observe(time, now_us=0) for time in times[cut:]] == expected


def test_idleness_is_told_once_and_ends_with_the_next_row():
    progress = fresh(period_us=100, idle_time_us=10)
    assert progress.observe(500, now_us=0) == [Watermark.event_time(500)]
    assert progress.check_idle(now_us=9) == []
    assert progress.check_idle(now_us=10) == [Watermark.idle()]
    assert progress.check_idle(now_us=99) == []
    assert progress.observe(400, now_us=100) == [Watermark.event_time(500)]
    assert progress.check_idle(now_us=109) == []


def test_what_the_period_held_back_is_sent_before_idleness():
    progress = fresh(period_us=100, idle_time_us=10)
    progress.observe(500, now_us=0)
    assert progress.observe(570, now_us=0) == []
    assert progress.check_idle(now_us=10) == [Watermark.event_time(570), Watermark.idle()]


def test_the_time_a_job_was_down_is_not_idleness():
    progress = fresh(idle_time_us=10)
    progress.observe(500, now_us=0)
    state = progress.store(parallelism=1, now_us=6)
    later = WatermarkProgress(state, period_us=0, idle_time_us=10, now_us=1_000_000)
    assert later.check_idle(now_us=1_000_003) == []
    assert later.check_idle(now_us=1_000_004) == [Watermark.idle()]


def test_rows_without_event_time_do_not_end_idleness():
    progress = fresh(idle_time_us=10)
    assert progress.check_idle(now_us=10) == [Watermark.idle()]
    assert progress.observe(None, now_us=11) == []
    assert progress.current() == [Watermark.idle()]


def test_an_ended_stream_sends_nothing_more():
    progress = fresh(idle_time_us=10)
    progress.observe(500, now_us=0)
    progress.end()
    assert progress.current() == []
    assert progress.check_idle(now_us=100) == []
    assert progress.become_idle() == []
