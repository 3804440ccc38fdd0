import pickle

import pyarrow as pa

from arroyo_core.runtime.frames import EMPTY, Frame, FrameKind, FrameWriter, decode_batch, encode_batch


def test_frames_are_pickled_with_their_payloads():
    batch = pa.record_batch({"a": [1, 2, 3], "b": ["x", None, "z"]})
    sent = Frame(3, 1, 0, 2, 77, 5, FrameKind.DATA, encode_batch(batch))
    got = pickle.loads(pickle.dumps(sent, protocol=5))
    assert decode_batch(got.payload, batch.schema) == batch
    assert (got.target, got.chain, got.input, got.sender, got.attempt, got.seq, got.kind) == (3, 1, 0, 2, 77, 5, 0)


def test_a_slice_sends_only_its_own_rows():
    batch = pa.record_batch({"a": list(range(100_000))})
    assert encode_batch(batch.slice(5, 10)).size < 1000
    assert decode_batch(encode_batch(batch.slice(5, 10)), batch.schema).column(0).to_pylist() == list(range(5, 15))


def test_dictionaries_are_decoded():
    batch = pa.record_batch({"a": pa.array(["x", "y", "x"]).dictionary_encode()})
    assert decode_batch(encode_batch(batch), pa.schema({"a": pa.string()})).column(0).to_pylist() == ["x", "y", "x"]


def test_the_writer_gives_each_frame_once():
    writer = FrameWriter()
    frame = Frame(0, 0, 0, 0, 0, 0, FrameKind.BARRIER, EMPTY)
    writer.write(frame)
    assert writer.drain() == [frame]
    assert writer.drain() == []
