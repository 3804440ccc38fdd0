import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.api import SignalMessage, Watermark
from arroyo_core.errors import DataError, ExchangeError
from arroyo_core.runtime import exchange
from arroyo_core.runtime.exchange import (
    FRAME_BYTES,
    EdgeSender,
    RebalanceRouter,
    Receiver,
    ShuffleRouter,
    decode_watermark,
    encode_watermark,
    split,
)
from arroyo_core.runtime.frames import EMPTY, Frame, FrameKind, FrameWriter, decode_batch

SCHEMA = pa.schema({"key": pa.int64(), "value": pa.int64()})


def sender(writer, router, parallelism):
    return EdgeSender(writer, router, chain=1, input=0, sender=0, attempt=7, targets=range(parallelism))


def sent_frames(writer):
    return writer.drain()


@given(st.lists(st.integers(-5, 5), max_size=200), st.integers(1, 5), st.integers(1, 40))
def test_a_shuffle_loses_no_row_and_keeps_keys_together(keys, parallelism, size):
    writer = FrameWriter()
    edge = sender(writer, ShuffleRouter(("key",), parallelism), parallelism)
    rows = list(enumerate(keys))
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        edge.send(pa.record_batch([[key for _, key in part], [value for value, _ in part]], schema=SCHEMA))
    edge.finish(None)
    targets: dict[int, int] = {}
    values = []
    for frame in sent_frames(writer):
        if frame.kind is FrameKind.DATA:
            batch = decode_batch(frame.payload, SCHEMA)
            values += batch.column(1).to_pylist()
            for key in batch.column(0).to_pylist():
                assert targets.setdefault(key, frame.target) == frame.target
    assert sorted(values) == [value for value, _ in rows]


@given(st.lists(st.integers(0, 3999), min_size=1, max_size=60), st.integers(1, 4000))
def test_splitting_by_sort_gives_each_target_its_rows_in_their_order(drawn, parallelism):
    targets = np.array([target % parallelism for target in drawn], dtype=np.int32)
    batch = pa.record_batch({"row": np.arange(len(targets))})
    parts = {target: part.column(0).to_pylist() for target, part in split(batch, targets, parallelism)}
    assert parts == {target: np.flatnonzero(targets == target).tolist() for target in sorted(set(targets.tolist()))}


WIDE = pa.schema({"key": pa.int64(), "text": pa.string()})


def wide(sizes, first=0):
    return pa.record_batch([range(first, first + len(sizes)), ["x" * size for size in sizes]], schema=WIDE)


def data_frames(writer):
    return [frame for frame in writer.drain() if frame.kind is FrameKind.DATA]


@pytest.mark.parametrize("parallelism", [1, 2, 50])
def test_a_large_batch_is_sent_in_frames_of_about_a_megabyte(parallelism):
    writer = FrameWriter()
    edge = sender(writer, ShuffleRouter(("key",), parallelism), parallelism)
    edge.send(wide([8 << 10] * 2000))
    edge.finish(None)
    frames = data_frames(writer)
    assert all(frame.payload.size < 1.6 * FRAME_BYTES for frame in frames)
    keys = [key for frame in frames for key in decode_batch(frame.payload, WIDE).column(0).to_pylist()]
    assert sorted(keys) == list(range(2000))
    assert len(frames) <= 16 + 2 * parallelism


def test_a_row_larger_than_a_frame_goes_alone():
    writer = FrameWriter()
    edge = sender(writer, ShuffleRouter((), 1), 1)
    edge.send(wide([10] * 500 + [9 << 20] + [10] * 500))
    edge.send(wide([10, 10], first=1001))
    edge.finish(None)
    frames = data_frames(writer)
    sizes = {frame.payload.size: decode_batch(frame.payload, WIDE).num_rows for frame in frames}
    assert [rows for size, rows in sizes.items() if size > 2 * FRAME_BYTES] == [1]
    keys = [key for frame in frames for key in decode_batch(frame.payload, WIDE).column(0).to_pylist()]
    assert keys == list(range(1003))
    assert len(frames) < 20


def test_a_row_that_cannot_be_sent_is_an_error_that_names_the_edge(lab, monkeypatch):
    monkeypatch.setattr("arroyo_core.runtime.frames.MAX_FRAME_BYTES", 64)
    nodes = [
        {"id": "s", "operator": "test.rows", "config": {"count": 20}},
        {"id": "p", "operator": "test.passing", "inputs": ["s"], "config": {"keys": ["key"]}},
        {"id": "o", "operator": "test.sink", "inputs": ["p"]},
    ]
    with pytest.raises(DataError, match=r"bytes cannot be sent from 's' to 'p': a row must stay below 64"):
        lab.run(nodes, parallelism=2)


def test_rows_that_wait_do_not_keep_large_batches_in_memory(monkeypatch):
    monkeypatch.setattr(exchange, "_HELD_BYTES", 100_000)
    writer = FrameWriter()
    edge = sender(writer, RebalanceRouter(0, 8), 8)
    waiting = 0
    for number in range(40):
        edge.send(wide([1000] * 40, first=number * 40))
        waiting += 40
        waiting -= sum(decode_batch(frame.payload, WIDE).num_rows for frame in data_frames(writer))
        # The rows that wait are slices of the batches of 40 KB that were sent last.
        assert waiting <= 2 * 40
    edge.finish(None)


@given(st.lists(st.integers(0, 30), max_size=20), st.integers(1, 5))
def test_a_rebalance_loses_no_row(sizes, parallelism):
    router = RebalanceRouter(3, parallelism)
    rows = []
    for size in sizes:
        for target, part in router.route(pa.record_batch({"a": list(range(size))})):
            assert 0 <= target < parallelism
            rows += part.column(0).to_pylist()
    assert sorted(rows) == sorted(value for size in sizes for value in range(size))


def test_a_global_group_goes_to_subtask_zero():
    batch = pa.record_batch([[1, 2], [3, 4]], schema=SCHEMA)
    assert list(ShuffleRouter((), 4).route(batch)) == [(0, batch)]


def test_a_watermark_follows_the_rows_before_it():
    writer = FrameWriter()
    edge = sender(writer, ShuffleRouter((), 1), 1)
    edge.send(pa.record_batch([[1], [1]], schema=SCHEMA))
    edge.send_watermark(Watermark.event_time(9))
    counts = edge.finish(SignalMessage.END_OF_DATA)
    kinds = [frame.kind for frame in sent_frames(writer)]
    assert kinds == [FrameKind.DATA, FrameKind.WATERMARK, FrameKind.END_OF_DATA, FrameKind.BARRIER]
    assert counts == {0: 3}


def test_idleness_does_not_take_the_place_of_the_event_time_before_it():
    writer = FrameWriter()
    edge = sender(writer, ShuffleRouter((), 1), 1)
    edge.send_watermark(Watermark.event_time(9))
    edge.send_watermark(Watermark.idle())
    edge.finish(None)
    sent = [decode_watermark(frame.payload) for frame in sent_frames(writer) if frame.kind is FrameKind.WATERMARK]
    assert sent == [Watermark.event_time(9), Watermark.idle()]


def test_every_target_gets_the_watermark_and_the_barrier():
    writer = FrameWriter()
    edge = sender(writer, ShuffleRouter(("key",), 3), 3)
    edge.send_watermark(Watermark.idle())
    edge.finish(None)
    frames = sent_frames(writer)
    assert sorted(frame.target for frame in frames if frame.kind is FrameKind.WATERMARK) == [0, 1, 2]
    assert sorted(frame.target for frame in frames if frame.kind is FrameKind.BARRIER) == [0, 1, 2]


@pytest.mark.parametrize("watermark", [Watermark.idle(), Watermark.event_time(0), Watermark.event_time(-5)])
def test_watermarks_survive_the_exchange(watermark):
    assert decode_watermark(encode_watermark(watermark)) == watermark


def frame(seq, *, kind=FrameKind.DATA, attempt=1, sender=0):
    return Frame(0, 1, 0, sender, attempt, seq, kind, EMPTY)


def test_a_receiver_wants_the_barrier_of_every_sender():
    receiver = Receiver(1, 0, [(0, 0), (0, 1)])
    receiver.accept(frame(0))
    receiver.accept(frame(1, kind=FrameKind.BARRIER))
    with pytest.raises(ExchangeError, match="no barrier from sender 1 of input 0"):
        receiver.check_complete()


@pytest.mark.parametrize(
    "bad",
    [frame(0), frame(2), frame(1, attempt=2), frame(0, sender=9)],
    ids=["repeated", "gap", "other attempt", "unknown sender"],
)
def test_a_receiver_refuses_what_does_not_continue_a_channel(bad):
    receiver = Receiver(1, 0, [(0, 0)])
    receiver.accept(frame(0))
    with pytest.raises(ExchangeError):
        receiver.accept(bad)


def test_nothing_may_follow_the_barrier():
    receiver = Receiver(1, 0, [(0, 0)])
    receiver.accept(frame(0, kind=FrameKind.BARRIER))
    with pytest.raises(ExchangeError):
        receiver.accept(frame(0))
