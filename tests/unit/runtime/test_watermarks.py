from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.api import END_OF_TIME_US, Watermark
from arroyo_core.runtime.watermarks import UNSET, Level, WatermarkHolder, least_level

LEFT, RIGHT = (0, 0), (1, 0)


def at(time_us: int) -> Watermark:
    return Watermark.event_time(time_us)


def test_undefined_while_an_input_is_unset():
    holder = WatermarkHolder([LEFT, RIGHT])
    assert holder.update(LEFT, at(10)) is None
    assert holder.merged == UNSET


def test_the_minimum_over_inputs():
    holder = WatermarkHolder([LEFT, RIGHT])
    holder.update(LEFT, at(10))
    assert holder.update(RIGHT, at(5)) == at(5)
    assert holder.update(RIGHT, at(20)) == at(10)


def test_an_idle_input_is_ignored_once_its_epoch_has_ended():
    holder = WatermarkHolder([LEFT, RIGHT])
    holder.update(LEFT, at(10))
    assert holder.update(RIGHT, Watermark.idle()) is None
    assert holder.end_epoch(RIGHT) == at(10)


def test_an_input_that_was_idle_holds_the_others_back_until_its_epoch_has_ended():
    """It may come back with rows in this epoch, which are delivered after those of the others."""
    restored = {LEFT: Level(10), RIGHT: Level(5, is_idle=True)}
    holder = WatermarkHolder([LEFT, RIGHT], restored=restored, merged=Level(10))
    assert holder.update(LEFT, at(50)) is None
    assert holder.update(RIGHT, at(40)) == at(40)
    assert holder.end_epoch(RIGHT) is None
    assert holder.end_epoch(LEFT) is None
    assert holder.update(RIGHT, Watermark.idle()) == at(50)


def test_all_idle_is_idle_and_the_last_time_is_kept():
    holder = WatermarkHolder([LEFT])
    holder.update(LEFT, at(10))
    holder.update(LEFT, Watermark.idle())
    assert holder.end_epoch(LEFT) == Watermark.idle()
    assert holder.merged == Level(10, is_idle=True)


def test_all_inputs_idle_through_an_epoch_say_nothing_new():
    idle = Level(10, is_idle=True)
    holder = WatermarkHolder([LEFT, RIGHT], restored={LEFT: idle, RIGHT: idle}, merged=idle)
    assert holder.end_epoch(LEFT) is None
    assert holder.end_epoch(RIGHT) is None


def test_an_input_back_from_idleness_cannot_break_the_promise():
    holder = WatermarkHolder([LEFT, RIGHT])
    holder.update(LEFT, at(10))
    holder.update(RIGHT, Watermark.idle())
    holder.end_epoch(RIGHT)
    assert holder.update(RIGHT, at(3)) is None
    assert holder.merged == Level(10)


def test_an_input_back_from_idleness_with_an_old_time_ends_idleness_all_the_same():
    holder = WatermarkHolder([LEFT, RIGHT], restored={LEFT: Level(10, is_idle=True), RIGHT: Level(8, is_idle=True)})
    assert holder.end_epoch(LEFT) is None
    assert holder.end_epoch(RIGHT) == Watermark.idle()
    holder = WatermarkHolder([LEFT, RIGHT], restored=dict(holder.channels), merged=Level(10, is_idle=True))
    assert holder.update(RIGHT, at(8)) == at(10)


def test_an_equal_watermark_does_not_fire_again():
    holder = WatermarkHolder([LEFT])
    holder.update(LEFT, at(10))
    assert holder.update(LEFT, at(10)) is None


def test_restored_inputs_keep_each_its_own_time():
    holder = WatermarkHolder([LEFT, RIGHT], restored={LEFT: Level(10), RIGHT: Level(300)}, merged=Level(10))
    assert holder.restate() is None
    assert holder.update(LEFT, at(15)) == at(15)
    assert holder.update(LEFT, at(400)) == at(300)


def test_restored_inputs_of_a_changed_pipeline_are_made_known():
    holder = WatermarkHolder([LEFT], restored={LEFT: Level(20)}, merged=Level(10))
    assert holder.restate() == at(20)
    assert holder.restate() is None


def test_an_input_that_has_ended_says_nothing_about_idle_ones_that_may_come_back():
    holder = WatermarkHolder([LEFT, RIGHT], restored={RIGHT: Level(5, is_idle=True)})
    assert holder.update(LEFT, at(END_OF_TIME_US)) is None
    assert holder.end_epoch(LEFT) is None
    assert holder.end_epoch(RIGHT) == Watermark.idle()
    holder = WatermarkHolder([LEFT, RIGHT], restored=dict(holder.channels), merged=holder.merged)
    assert holder.update(RIGHT, at(7)) == at(7)
    assert holder.update(RIGHT, at(END_OF_TIME_US)) == at(END_OF_TIME_US)


LEVELS = st.builds(Level, st.none() | st.integers(-50, 50), is_idle=st.booleans()) | st.just(Level(END_OF_TIME_US))


@given(st.lists(LEVELS))
def test_the_least_level_is_that_of_a_holder_whose_epoch_has_ended(levels):
    channels = {(0, index): level for index, level in enumerate(levels)}
    holder = WatermarkHolder(channels, restored=channels)
    for channel in channels:
        holder.end_epoch(channel)
    holder.restate()
    expected = least_level(levels) if levels else Level(is_idle=True)
    assert holder.merged.watermark == expected.watermark


@given(st.lists(st.tuples(st.integers(0, 2), st.one_of(st.none(), st.integers(-50, 50)), st.booleans()), max_size=60))
def test_the_merged_event_time_never_goes_backwards(updates):
    holder = WatermarkHolder([(index, 0) for index in range(3)])
    last = None
    for index, time_us, is_end in updates:
        for moved in (holder.update((index, 0), Watermark(time_us)), holder.end_epoch((index, 0)) if is_end else None):
            if moved is not None and moved.event_time_us is not None:
                assert last is None or moved.event_time_us >= last
                last = moved.event_time_us
    assert holder.merged.event_time_us == last
