from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.api import Watermark
from arroyo_core.runtime.watermarks import WatermarkHolder

LEFT, RIGHT = (0, 0), (1, 0)


def at(time_us: int) -> Watermark:
    return Watermark.event_time(time_us)


def test_undefined_while_an_input_is_unset():
    holder = WatermarkHolder([LEFT, RIGHT])
    assert holder.update(LEFT, at(10)) is None
    assert holder.merged is None


def test_the_minimum_over_inputs():
    holder = WatermarkHolder([LEFT, RIGHT])
    holder.update(LEFT, at(10))
    assert holder.update(RIGHT, at(5)) == at(5)
    assert holder.update(RIGHT, at(20)) == at(10)


def test_idle_inputs_are_ignored():
    holder = WatermarkHolder([LEFT, RIGHT])
    holder.update(LEFT, at(10))
    assert holder.update(RIGHT, Watermark.idle()) == at(10)


def test_all_idle_is_idle_and_the_last_time_is_kept():
    holder = WatermarkHolder([LEFT])
    holder.update(LEFT, at(10))
    assert holder.update(LEFT, Watermark.idle()) == Watermark.idle()
    assert holder.last_present_us == 10


def test_an_input_back_from_idleness_cannot_break_the_promise():
    holder = WatermarkHolder([LEFT, RIGHT])
    holder.update(LEFT, at(10))
    holder.update(RIGHT, Watermark.idle())
    assert holder.update(RIGHT, at(3)) is None
    assert holder.last_present_us == 10


def test_an_equal_watermark_does_not_fire_again():
    holder = WatermarkHolder([LEFT])
    holder.update(LEFT, at(10))
    assert holder.update(LEFT, at(10)) is None


def test_restored_inputs_fire_nothing_until_they_move():
    holder = WatermarkHolder([LEFT, RIGHT])
    holder.restore(LEFT, at(10))
    holder.restore(RIGHT, at(20))
    assert holder.merged == at(10)
    assert holder.update(LEFT, at(15)) == at(15)
    assert holder.input_watermark(1) == at(20)


@given(st.lists(st.tuples(st.integers(0, 2), st.one_of(st.none(), st.integers(-50, 50))), max_size=60))
def test_the_merged_event_time_never_goes_backwards(updates):
    holder = WatermarkHolder([(index, 0) for index in range(3)])
    last = None
    for index, time_us in updates:
        moved = holder.update((index, 0), Watermark(time_us))
        if moved is not None and moved.event_time_us is not None:
            assert last is None or moved.event_time_us >= last
            last = moved.event_time_us
    assert holder.last_present_us == last
