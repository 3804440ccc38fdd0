"""How a stream is cut into epochs, and what happens between them, must not show in what comes out of windows."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from arroyo_testing.conformance.discovery import load_registry
from arroyo_testing.rounds import Life, RoundPipeline, RoundStream, Turn
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.api import ArroyoSchema, Watermark

SCHEMA = ArroyoSchema(pa.schema({"k": pa.string(), "at": pa.timestamp("us", "UTC")}), "at")
REGISTRY = load_registry("arroyo_std.plugin")
IDLE = Watermark.idle()
TWO = (Life(2),)
COUNTED = [{"function": "count", "as": "rows"}]


def rows(*times_s, key="k"):
    at = [datetime.fromtimestamp(time_s, UTC) for time_s in times_s]
    return pa.record_batch([[key] * len(at), at], schema=SCHEMA.schema)


def turn(*times_s, seconds=0.0, mark=None, key="k"):
    watermark = mark if isinstance(mark, Watermark) or mark is None else Watermark.event_time(mark * 1_000_000)
    return Turn(rows(*times_s, key=key) if times_s else None, watermark, seconds)


def window(*inputs, size="10s", id="counts", **config):
    config = {"size": size, "keys": ["k"], "aggregates": COUNTED} | config
    return {"id": id, "operator": "std.tumbling_window", "inputs": list(inputs), "config": config}


def timed(source, id="timed", **config):
    return {"id": id, "operator": "std.watermark", "inputs": [source], "config": {"max_lateness": "0s"} | config}


def union(*inputs, id="all"):
    return {"id": id, "operator": "std.union", "inputs": list(inputs)}


def run(nodes, streams, cuts=None, lives=TWO):
    """The windows that fired: their key, their start in seconds, and how many rows they had."""
    return [row for _, row in run_by_epoch(nodes, streams, cuts, lives)]


def run_by_epoch(nodes, streams, cuts=None, lives=TWO):
    """The same, each with the epoch that it was committed in."""
    streams = [RoundStream(SCHEMA, lanes) for lanes in streams]
    lanes, rounds = len(streams[0].lanes), streams[0].rounds
    pipeline = RoundPipeline(nodes=nodes, streams=streams, registry=REGISTRY, outputs=["counts"])
    with TemporaryDirectory() as folder:
        found = pipeline.run(Path(folder), cuts or [[rounds] * lanes], lives)["counts"]
    return [
        (epoch, (row["k"], int(row["window_start"].timestamp()), row["rows"]))
        for (epoch, _), table in found.items()
        for row in table.to_pylist()
    ]


def every_round(lanes, rounds):
    return [[number] * lanes for number in range(1, rounds + 1)]


def test_a_subtask_back_from_idleness_with_a_row_that_does_not_move_its_watermark_is_waited_for():
    """Its second row at 100 s ends its idleness, but leaves its watermark where it was; what follows is on time."""
    first = [turn(100), turn(seconds=60), turn(), turn(160), turn(220)]
    second = [turn(100), turn(seconds=60), turn(100), turn(108), turn(120)]
    nodes = [timed("stream0", idle_time="10s"), window("timed")]
    cut = run(nodes, [[first, second]], every_round(2, 5))
    assert sorted(cut) == [("k", 100, 4), ("k", 120, 1), ("k", 160, 1), ("k", 220, 1)]
    assert sorted(run(nodes, [[first, second]])) == sorted(cut)


def test_a_quiet_subtask_that_is_ahead_does_not_hold_the_others_back():
    """One is at 300 s and quiet: windows up to where the other one comes fire, epoch by epoch."""
    ahead = [turn(300), *[turn()] * 14]
    behind = [turn(100 + 10 * number) for number in range(15)]
    nodes = [timed("stream0"), window("timed")]
    lives = [Life(2, 14)]
    fired = run(nodes, [[ahead, behind]], every_round(2, 15), lives)
    assert fired == [("k", start, 1) for start in range(100, 230, 10)]


def test_an_idle_subtask_behind_a_union_does_not_hold_the_others_back():
    active = [turn(20 + 20 * number, mark=20 + 20 * number) for number in range(7)]
    other = [turn(mark=20 + 20 * number) for number in range(7)]
    idle = [turn(20, mark=20), turn(mark=IDLE), *[turn()] * 5]
    nodes = [union("stream0", "stream1"), window("all")]
    fired = run(nodes, [[active, idle], [other, idle]], every_round(2, 7), [Life(2, 6)])
    assert fired == [("k", 20, 3), *(("k", start, 1) for start in range(40, 120, 20))]


BURST_THEN_SILENCE = {
    # The source says itself that it is idle, at once.
    "by the source": ([window("stream0")], [turn(5, 15, mark=12), turn(mark=IDLE), turn(), turn(35, mark=35)]),
    # The silence is long enough for std.watermark to notice.
    "by std.watermark": (
        [timed("stream0", idle_time="10s"), window("timed")],
        [turn(5, 12), turn(seconds=60), turn(), turn(35)],
    ),
    # And so long that a watermark within its period, which waits for more rows, is the last one.
    "in its period": (
        [timed("stream0", idle_time="10s", period="20s"), window("timed")],
        [turn(5), turn(12, seconds=60), turn(), turn(35)],
    ),
}


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize("ends", [[1, 2, 3, 4], [2, 3, 4], [3, 4]], ids=str)
@pytest.mark.parametrize("name", BURST_THEN_SILENCE)
def test_a_burst_and_then_silence_fires_its_windows_wherever_epochs_are_cut(name, ends, parallelism):
    nodes, lane = BURST_THEN_SILENCE[name]
    cuts = [[end, end] for end in ends]
    assert run(nodes, [[lane, lane]], cuts, [Life(parallelism, len(ends) - 1)]) == [("k", 0, 2)]


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_what_an_idle_subtask_was_ahead_counts_also_at_another_parallelism(parallelism):
    """One is idle at 35 s, the other one comes to 12 s; then the first epoch at another parallelism, and silence."""
    ahead = [turn(5, 35), turn(seconds=60), turn(), turn(seconds=60), turn(40)]
    behind = [turn(5), turn(12), turn(), turn(seconds=60), turn(40)]
    nodes = [timed("stream0", idle_time="10s"), window("timed")]
    lives = [Life(2, 2), Life(parallelism, 2)]
    fired = run(nodes, [[ahead, behind]], every_round(2, 5), lives)
    assert fired == [("k", 0, 2), ("k", 10, 1)]


def keyed(id):
    return {"id": id, "operator": "std.key_by", "inputs": ["stream0"], "config": {"keys": ["k"]}}


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_a_fired_window_does_not_fire_again_when_nodes_before_it_come_and_go(parallelism):
    """The row at 3 s is late in any case: its window has fired before the node in front was changed."""
    lane = [turn(5, 15, mark=12), turn(3, 16, mark=14), turn(21, mark=21), turn(3, 35, mark=35)]
    before, renamed = [keyed("by_key"), window("by_key")], [keyed("other"), window("other")]
    lives = [Life(2, 1), Life(parallelism, 1, renamed), Life(2, 1, [window("stream0")]), Life(parallelism)]
    fired = run(before, [[lane, lane]], every_round(2, 4), lives)
    assert sorted(fired) == [("k", 0, 2), ("k", 10, 4), ("k", 20, 2), ("k", 30, 2)]


LANES, ROUNDS = 3, 6
#: `EPOCH_CUT_SEEDS=300 pytest --hypothesis-seed=1` tries more of them, and others.
EXAMPLES = int(os.environ.get("EPOCH_CUT_SEEDS") or 12)
#: Of a lane in a round: the seconds of its rows within the round, or whether it is idle (None) or quiet.
DOINGS = st.lists(st.integers(0, 9), max_size=3) | st.none()


@st.composite
def rounds_of_lanes(draw):
    """Rows out of order by less than a round, in lanes that are idle or quiet at times; none of them late."""
    lanes = []
    for _ in range(LANES):
        turns = []
        for number in range(ROUNDS):
            seconds = draw(DOINGS)
            if seconds is None:
                turns.append(turn(mark=IDLE))
            elif seconds:
                times = [10 * number + second for second in seconds]
                turns.append(turn(*times, mark=10 * number, key=draw(st.sampled_from("ab"))))
            else:
                turns.append(turn(mark=10 * number if draw(st.booleans()) else None))
        lanes.append(turns)
    return lanes


@st.composite
def streams_with_a_quiet_point(draw):
    """Two streams, even cuts, and after how many epochs a point in the midst of the rounds is reached.

    Often all lanes are idle at that point: then nothing else comes that could make up for what was lost.
    """
    places = sorted(draw(st.sets(st.integers(1, ROUNDS - 1), min_size=1)))
    quiet_epoch = draw(st.integers(1, len(places)))
    streams = [draw(rounds_of_lanes()) for _ in range(2)]
    if draw(st.booleans()):
        for lanes in streams:
            for turns in lanes:
                turns[places[quiet_epoch - 1] - 1] = turn(mark=IDLE)
    return streams, [[place] * LANES for place in (*places, ROUNDS)], quiet_epoch


@st.composite
def some_lives(draw, parallelism=None):
    """Lives at any parallelism, or all at a given one."""
    drawn = st.integers(1, 4) if parallelism is None else st.just(parallelism)
    return [
        *(Life(draw(drawn), draw(st.integers(1, 3))) for _ in range(draw(st.integers(0, 3)))),
        Life(draw(drawn)),
    ]


def other_window(operator, **config):
    config = {"keys": ["k"], "aggregates": COUNTED} | config
    return {"id": "counts", "operator": operator, "inputs": ["stream0"], "config": config}


SUMMED = [{"function": "sum", "column": "rows", "as": "rows"}]
PIPELINES = {
    "tumbling": [window("stream0")],
    "sliding": [other_window("std.sliding_window", size="10s", slide="5s")],
    "session": [other_window("std.session_window", gap="4s")],
    "union": [union("stream0", "stream1"), window("all")],
    "allowed lateness": [window("stream0", allowed_lateness="7s")],
    "two shuffles": [window("stream0", id="first", size="5s"), window("first", aggregates=SUMMED)],
}


#: Where each subtask makes its watermark of the rows that it gets: which these are depends on the parallelism.
TIMED = {
    "held back": [timed("stream0", max_lateness="10s", period="1h"), window("timed")],
    "held back, union": [
        timed("stream0", max_lateness="10s", period="1h"),
        timed("stream1", id="other", max_lateness="10s"),
        union("timed", "other"),
        window("all"),
    ],
}


@pytest.mark.parametrize("name", [*PIPELINES, *TIMED])
@given(data=st.data(), drawn=streams_with_a_quiet_point())
@settings(max_examples=EXAMPLES, deadline=None)
def test_any_cut_gives_what_one_epoch_gives(name, data, drawn):
    """At the end, and as far as it can be known at a quiet point before."""
    streams, cuts, quiet_epoch = drawn
    nodes = PIPELINES.get(name) or TIMED[name]
    streams = streams if "union" in name else streams[:1]
    lives = data.draw(some_lives(LANES if name in TIMED else None))
    whole = run_by_epoch(nodes, streams, [cuts[quiet_epoch - 1], cuts[-1]], [Life(LANES)])
    cut = run_by_epoch(nodes, streams, cuts, lives)
    assert sorted(row for _, row in cut) == sorted(row for _, row in whole)
    assert committed_by(cut, quiet_epoch) == committed_by(whole, 1)


def committed_by(rows, epoch):
    return sorted(row for committed, row in rows if committed <= epoch)
