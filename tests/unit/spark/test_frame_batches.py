import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.runtime.frames import EMPTY, Frame, FrameKind, decode_batch, encode_batch
from arroyo_core.spark.frame_batches import BATCH_BYTES, FRAME_DDL, FRAME_SCHEMA, batches_of, frames_of, frames_to_batch

payloads = st.binary(max_size=40)
frames = st.builds(
    Frame,
    target=st.integers(0, 100),
    chain=st.integers(-1, 100),
    input=st.integers(0, 3),
    sender=st.integers(0, 100),
    attempt=st.integers(0, 2**40),
    seq=st.integers(0, 2**40),
    kind=st.sampled_from(FrameKind),
    payload=payloads.map(pa.py_buffer),
)


@given(st.lists(frames, min_size=1, max_size=20))
def test_frames_survive_the_exchange(sent):
    batch = frames_to_batch(sent)
    assert batch.schema == FRAME_SCHEMA
    got = list(frames_of(batch))
    assert [frame.payload.to_pybytes() for frame in got] == [frame.payload.to_pybytes() for frame in sent]
    assert [(f.target, f.chain, f.input, f.sender, f.attempt, f.seq, f.kind) for f in got] == [
        (f.target, f.chain, f.input, f.sender, f.attempt, f.seq, f.kind) for f in sent
    ]


def test_a_sliced_batch_gives_its_own_frames():
    sent = [Frame(i, 0, 0, 0, 0, i, FrameKind.DATA, pa.py_buffer(bytes([i]) * i)) for i in range(5)]
    got = list(frames_of(frames_to_batch(sent).slice(2, 2)))
    assert [frame.payload.to_pybytes() for frame in got] == [b"\x02\x02", b"\x03\x03\x03"]


def test_data_behind_a_payload_of_odd_size_is_read_aligned():
    batch = pa.record_batch({"a": [1, 2, 3], "b": ["x", None, "z"]})
    sent = [
        Frame(0, 0, 0, 0, 0, 0, FrameKind.REPORT, pa.py_buffer(b"odd")),
        Frame(0, 0, 0, 0, 0, 1, FrameKind.DATA, encode_batch(batch)),
    ]
    got = list(frames_of(frames_to_batch(sent)))[1]
    decoded = decode_batch(got.payload, batch.schema)
    assert decoded == batch
    assert decoded.column(0).buffers()[1].address % 8 == 0


def test_small_frames_share_a_batch():
    small = Frame(0, 0, 0, 0, 0, 0, FrameKind.BARRIER, EMPTY)
    large = Frame(0, 0, 0, 0, 0, 0, FrameKind.DATA, pa.py_buffer(bytes(BATCH_BYTES)))
    assert [batch.num_rows for batch in batches_of([small, small, large, large, small])] == [3, 1, 1]
    assert list(batches_of([])) == []


def test_spark_is_told_the_columns_of_a_frame():
    # What runs on executors and what the driver collects must agree on it.
    assert FRAME_DDL == (
        "target int not null, chain int not null, input int not null, sender int not null, attempt bigint not null, "
        "seq bigint not null, kind tinyint not null, payload binary not null"
    )
    assert FRAME_SCHEMA.names[-1] == "payload"
