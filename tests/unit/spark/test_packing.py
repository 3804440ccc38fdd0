"""Records of a shuffle: bounded by bytes, in order, for the right partition."""

import pickle
import struct

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.runtime.frames import EMPTY, Frame, FrameKind
from arroyo_core.spark import packing
from arroyo_core.spark.packing import RECORD_BYTES, records_of


def frame(target, seq, size=0):
    payload = pa.py_buffer(bytes(size)) if size else EMPTY
    return Frame(target, 1, 0, 0, 0, seq, FrameKind.DATA, payload)


def unpacked(frames, width):
    """Each record as its partition and its frames."""
    elements = list(records_of(frames, width))
    return [
        (struct.unpack("!q", partition)[0], pickle.loads(data))
        for partition, data in zip(elements[::2], elements[1::2], strict=True)
    ]


@given(
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from([0, 10, 300_000, 2_000_000])), max_size=40), st.integers(1, 7)
)
def test_every_frame_reaches_its_partition_in_order(sizes, width):
    frames = [frame(target, seq, size) for seq, (target, size) in enumerate(sizes)]
    for partition in range(width):
        got = [item.seq for number, items in unpacked(frames, width) for item in items if number == partition]
        assert got == [item.seq for item in frames if item.target % width == partition]


def test_records_are_about_a_megabyte_and_a_large_frame_is_alone():
    frames = [frame(0, seq, 300_000) for seq in range(10)] + [frame(0, 10, 5 * RECORD_BYTES), frame(0, 11)]
    records = [[item.payload.size for item in items] for _, items in unpacked(frames, 2)]
    assert records == [[300_000] * 3, [300_000] * 3, [300_000] * 3, [300_000], [5 * RECORD_BYTES], [0]]


def test_what_waits_for_many_partitions_is_bounded(monkeypatch):
    monkeypatch.setattr(packing, "WAITING_BYTES", 1000)
    frames = iter([frame(target % 300, target, 200) for target in range(1000)])
    given = most = 0
    for element in records_of(frames, 300):
        if len(element) > 8:
            given += len(pickle.loads(element))
        taken = 1000 - frames.__length_hint__()
        most = max(most, taken - given)
    assert given == 1000
    assert most <= 4


def test_small_frames_for_one_partition_share_a_record():
    assert [len(items) for _, items in unpacked([frame(seq % 2, seq) for seq in range(100)], 2)] == [50, 50]
