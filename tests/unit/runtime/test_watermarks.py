from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.api import END_OF_TIME_US, Watermark
from arroyo_core.runtime.watermarks import UNSET, Level, WatermarkHolder, least_level

LEFT, RIGHT = (0, 0), (1, 0)


def at(time_us: int) -> Watermark:
    return Watermark.event_time(time_us)


def test_undefined_while_an_input_is_unset():
    holder = WatermarkHolder([LEFT, RIGHT])
    assert holder.update(LEFT, at(10)) == []
    assert holder.merged.is_unset


def test_the_minimum_over_inputs():
    holder = WatermarkHolder([LEFT, RIGHT])
    holder.update(LEFT, at(10))
    assert holder.update(RIGHT, at(5)) == [at(5)]
    assert holder.update(RIGHT, at(20)) == [at(10)]


def test_an_idle_input_is_ignored_once_its_epoch_has_ended():
    holder = WatermarkHolder([LEFT, RIGHT])
    holder.update(LEFT, at(10))
    assert holder.update(RIGHT, Watermark.idle()) == []
    assert holder.end_epoch(RIGHT) == [at(10)]


def test_an_input_that_was_idle_holds_the_others_back_until_its_epoch_has_ended():
    """It may come back with rows in this epoch, which are delivered after those of the others."""
    restored = {LEFT: Level(10), RIGHT: Level(5, is_idle=True)}
    holder = WatermarkHolder([LEFT, RIGHT], restored=restored, merged=Level(10))
    assert holder.update(LEFT, at(50)) == []
    assert holder.update(RIGHT, at(40)) == [at(40)]
    assert holder.end_epoch(RIGHT) == []
    assert holder.end_epoch(LEFT) == []
    assert holder.update(RIGHT, Watermark.idle()) == [at(50)]


def test_all_idle_is_idle_and_the_last_time_is_kept():
    holder = WatermarkHolder([LEFT])
    holder.update(LEFT, at(10))
    holder.update(LEFT, Watermark.idle())
    assert holder.end_epoch(LEFT) == [Watermark.idle()]
    assert holder.merged == Level(10, is_idle=True)


def test_a_watermark_and_then_idleness_in_one_epoch_both_count():
    """Cut between the two, the active input alone would have counted: so it must where they are not cut."""
    restored = {LEFT: Level(10), RIGHT: Level(10, is_idle=True)}
    holder = WatermarkHolder([LEFT, RIGHT], restored=restored, merged=Level(10))
    assert holder.update(LEFT, at(35)) == []
    assert holder.update(LEFT, Watermark.idle()) == []
    assert holder.end_epoch(LEFT) == []
    assert holder.end_epoch(RIGHT) == [at(35), Watermark.idle()]
    assert holder.merged == Level(35, is_idle=True)


@pytest.mark.parametrize("order", [(LEFT, RIGHT), (RIGHT, LEFT)])
def test_all_idle_is_where_the_furthest_has_come_whichever_was_idle_first(order):
    merged, channels = UNSET, {}
    for idle in ((), order[:1], order):
        holder = WatermarkHolder([LEFT, RIGHT], restored=channels, merged=merged)
        for channel, time_us in ((LEFT, 20), (RIGHT, 35)):
            if channel in idle or not channels:
                holder.update(channel, Watermark.idle() if channel in idle else at(time_us))
            holder.end_epoch(channel)
        merged, channels = holder.merged, dict(holder.channels)
    assert merged == Level(35, is_idle=True)


def test_where_an_input_was_before_its_end_counts_when_the_others_are_idle():
    holder = WatermarkHolder([LEFT, RIGHT], restored={LEFT: Level(20), RIGHT: Level(20)}, merged=Level(20))
    holder.update(LEFT, at(50))
    holder.update(LEFT, at(END_OF_TIME_US))
    for channel in (LEFT, RIGHT):
        assert holder.end_epoch(channel) == []
    holder = WatermarkHolder([LEFT, RIGHT], restored=dict(holder.channels), merged=holder.merged)
    holder.update(RIGHT, Watermark.idle())
    holder.end_epoch(LEFT)
    assert holder.end_epoch(RIGHT) == [at(50), Watermark.idle()]


def test_where_a_former_input_was_counts_when_all_are_idle():
    """As after a change of parallelism: the new inputs know only where the least of the old ones was."""
    holder = WatermarkHolder([LEFT], restored={LEFT: Level(10)}, merged=Level(10, furthest_us=35))
    holder.update(LEFT, at(12))
    holder.update(LEFT, Watermark.idle())
    assert holder.end_epoch(LEFT) == [at(35), Watermark.idle()]


def test_all_inputs_idle_through_an_epoch_say_nothing_new():
    idle = Level(10, is_idle=True)
    holder = WatermarkHolder([LEFT, RIGHT], restored={LEFT: idle, RIGHT: idle}, merged=idle)
    assert holder.end_epoch(LEFT) == []
    assert holder.end_epoch(RIGHT) == []


def test_an_input_back_from_idleness_cannot_break_the_promise():
    holder = WatermarkHolder([LEFT, RIGHT])
    holder.update(LEFT, at(10))
    holder.update(RIGHT, Watermark.idle())
    holder.end_epoch(RIGHT)
    assert holder.update(RIGHT, at(3)) == []
    assert holder.merged == Level(10)


def test_an_input_back_from_idleness_with_an_old_time_ends_idleness_all_the_same():
    holder = WatermarkHolder([LEFT, RIGHT], restored={LEFT: Level(10, is_idle=True), RIGHT: Level(8, is_idle=True)})
    assert holder.end_epoch(LEFT) == []
    assert holder.end_epoch(RIGHT) == [at(10), Watermark.idle()]
    holder = WatermarkHolder([LEFT, RIGHT], restored=dict(holder.channels), merged=holder.merged)
    assert holder.update(RIGHT, at(8)) == [at(10)]


def test_an_equal_watermark_does_not_fire_again():
    holder = WatermarkHolder([LEFT])
    holder.update(LEFT, at(10))
    assert holder.update(LEFT, at(10)) == []


def test_restored_inputs_keep_each_its_own_time():
    holder = WatermarkHolder([LEFT, RIGHT], restored={LEFT: Level(10), RIGHT: Level(300)}, merged=Level(10))
    assert holder.restate() == []
    assert holder.update(LEFT, at(15)) == [at(15)]
    assert holder.update(LEFT, at(400)) == [at(300)]


def test_restored_inputs_of_a_changed_pipeline_are_made_known():
    holder = WatermarkHolder([LEFT], restored={LEFT: Level(20)}, merged=Level(10))
    assert holder.restate() == [at(20)]
    assert holder.restate() == []


def test_an_input_that_has_ended_says_nothing_about_idle_ones_that_may_come_back():
    holder = WatermarkHolder([LEFT, RIGHT], restored={RIGHT: Level(5, is_idle=True)})
    assert holder.update(LEFT, at(END_OF_TIME_US)) == []
    assert holder.end_epoch(LEFT) == []
    assert holder.end_epoch(RIGHT) == [at(5), Watermark.idle()]
    holder = WatermarkHolder([LEFT, RIGHT], restored=dict(holder.channels), merged=holder.merged)
    assert holder.update(RIGHT, at(7)) == [at(7)]
    assert holder.update(RIGHT, at(END_OF_TIME_US)) == [at(END_OF_TIME_US)]


LEVELS = st.builds(Level, st.none() | st.integers(-50, 50), is_idle=st.booleans()) | st.just(Level(END_OF_TIME_US))


@given(st.lists(LEVELS))
def test_the_least_level_is_that_of_a_holder_whose_epoch_has_ended(levels):
    channels = {(0, index): level for index, level in enumerate(levels)}
    holder = WatermarkHolder(channels, restored=channels)
    for channel in channels:
        holder.end_epoch(channel)
    holder.restate()
    expected = least_level(levels) if levels else Level(is_idle=True)
    assert holder.merged == expected


@given(st.lists(st.none() | st.integers(-50, 50), max_size=20), st.data())
def test_one_who_knows_an_earlier_level_is_told_of_a_later_one_in_two_watermarks_at_most(times, data):
    levels = [UNSET]
    for time_us in times:
        levels.append(levels[-1].after(Watermark(time_us)))
    known = data.draw(st.sampled_from(levels))
    told = levels[-1].since(known)
    assert len(told) <= 2
    for watermark in told:
        known = known.after(watermark)
    assert known == levels[-1]


@st.composite
def rounds_of_channels(draw):
    """What each channel says in each round: the round's time, that it is idle, or nothing; and where rounds are cut."""
    rounds = draw(st.lists(st.lists(st.sampled_from(["time", "idle", "quiet"]), min_size=3, max_size=3), max_size=8))
    said = [
        [at(number) if each == "time" else Watermark.idle() if each == "idle" else None for each in channels]
        for number, channels in enumerate(rounds)
    ]
    return said, draw(st.sets(st.integers(0, len(rounds)))) | {0, len(rounds)}


@given(rounds_of_channels(), st.permutations(range(3)))
def test_any_cut_of_the_same_watermarks_comes_to_the_same_level(played, order):
    """Channels deliver one after the other, and none comes back from idleness behind what was reached without it."""
    said, cuts = played
    assert merged_in_epochs(said, sorted(cuts), order) == merged_in_epochs(said, range(len(said) + 1), range(3))


def merged_in_epochs(said, cuts, order):
    holder = WatermarkHolder([(0, channel) for channel in range(3)])
    for start, end in pairwise(cuts):
        holder = WatermarkHolder(holder.channels, restored=dict(holder.channels), merged=holder.merged)
        for channel in order:
            for watermark in (channels[channel] for channels in said[start:end]):
                if watermark is not None:
                    holder.update((0, channel), watermark)
            holder.end_epoch((0, channel))
    return holder.merged


def test_how_far_an_ended_input_had_come_is_learned_while_the_epoch_runs():
    """Of the watermarks 10 and the end of time only the end was sent: the sender knows more than came."""
    ended, idle = Level(END_OF_TIME_US, furthest_us=10), Level(4)
    holder = WatermarkHolder([LEFT, RIGHT], restored={LEFT: Level(END_OF_TIME_US), RIGHT: idle}, merged=Level(4))
    holder.update(RIGHT, Watermark.idle())
    holder.learn({LEFT: ended, RIGHT: idle})
    assert holder.end_epoch(LEFT) == []
    assert holder.end_epoch(RIGHT) == [at(10), Watermark.idle()]


ENDED = st.builds(Level, st.just(END_OF_TIME_US), furthest_us=st.none() | st.integers(-50, 50))


@given(
    st.lists(LEVELS | ENDED, min_size=3, max_size=3),
    st.lists(st.tuples(st.integers(0, 2), st.none() | st.integers(-50, 50)), max_size=20),
)
def test_an_epoch_that_learns_late_comes_to_the_same_level(levels, said):
    """What one knows from the beginning, and another one learns before the first barrier, makes no difference."""
    restored = {(0, index): level for index, level in enumerate(levels)}
    heard = {channel: Level(level.event_time_us, level.is_idle) for channel, level in restored.items()}
    early, late = (WatermarkHolder(found, restored=found) for found in (restored, heard))
    for index, time_us in said:
        if not levels[index].has_ended:
            early.update((0, index), Watermark(time_us))
            late.update((0, index), Watermark(time_us))
    late.learn(restored)
    for channel in restored:
        early.end_epoch(channel)
        late.end_epoch(channel)
    assert late.merged == early.merged


@given(st.lists(st.tuples(st.integers(0, 2), st.one_of(st.none(), st.integers(-50, 50)), st.booleans()), max_size=60))
def test_the_merged_event_time_never_goes_backwards(updates):
    holder = WatermarkHolder([(index, 0) for index in range(3)])
    last = None
    for index, time_us, is_end in updates:
        moves = holder.update((index, 0), Watermark(time_us))
        for moved in (*moves, *(holder.end_epoch((index, 0)) if is_end else ())):
            if moved.event_time_us is not None:
                assert last is None or moved.event_time_us >= last
                last = moved.event_time_us
    assert holder.merged.event_time_us == last
