import pickle

import pyarrow as pa
import pytest

from arroyo_core.errors import DataError, ExchangeError
from arroyo_core.runtime import frames
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


def test_rows_whose_offsets_lead_out_of_the_frame_are_refused():
    batch = pa.record_batch({"a": ["x", "yz"]})
    payload = bytearray(encode_batch(batch).to_pybytes())
    place = payload.index(bytes([0, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0]))
    payload[place + 8 : place + 12] = (10**6).to_bytes(4, "little")
    with pytest.raises(ExchangeError, match="does not hold rows of its channel"):
        decode_batch(pa.py_buffer(bytes(payload)), batch.schema)


@pytest.mark.parametrize("payload", [b"", b"\xff" * 40])
def test_bytes_that_are_no_rows_are_refused(payload):
    with pytest.raises(ExchangeError, match=f"a frame of {len(payload)} bytes"):
        decode_batch(pa.py_buffer(payload), pa.schema({"a": pa.string()}))


def test_the_writer_gives_each_frame_once():
    writer = FrameWriter()
    frame = Frame(0, 0, 0, 0, 0, 0, FrameKind.BARRIER, EMPTY)
    writer.write(frame)
    assert writer.drain() == [frame]
    assert writer.drain() == []


TEXTS = pa.array(["x", None, "x"])
LISTS = pa.array([["x"], None, []])
STRUCTS = pa.array([{"a": "x"}, None, {"a": None}])


@pytest.mark.parametrize(
    ("plain", "kind"),
    [
        (TEXTS, pa.string_view()),
        (TEXTS, pa.dictionary(pa.int8(), pa.string())),
        (LISTS, pa.list_(pa.string_view())),
        (STRUCTS, pa.struct({"a": pa.dictionary(pa.int32(), pa.string())})),
    ],
    ids=str,
)
def test_columns_that_are_sent_plain_come_back_as_declared(plain, kind):
    batch = pa.record_batch({"a": plain.cast(kind)})
    assert decode_batch(encode_batch(batch), batch.schema) == batch


def test_a_slice_of_a_view_sends_only_its_own_rows():
    batch = pa.record_batch({"a": pa.array([f"{row:01000}" for row in range(1000)], pa.string_view())})
    assert encode_batch(batch.slice(5, 10)).size < 12_000
    assert decode_batch(encode_batch(batch.slice(5, 10)), batch.schema) == batch.slice(5, 10)


def test_a_row_that_cannot_be_sent_is_a_clear_error(monkeypatch):
    monkeypatch.setattr(frames, "MAX_FRAME_BYTES", 10_000)
    with pytest.raises(DataError, match=r"a row of 2\d,\d\d\d bytes cannot be sent.*must stay below 10,000 bytes"):
        encode_batch(pa.record_batch({"a": ["x" * 20_000]}))


def test_a_dictionary_that_repeats_too_much_is_sent_in_parts(monkeypatch):
    cast = frames._cast

    def cast_few(batch, schema):
        # As Arrow does above 2 GiB.
        if batch.num_rows > 3:
            raise pa.ArrowInvalid("offset overflow while concatenating arrays")
        return cast(batch, schema)

    monkeypatch.setattr(frames, "_cast", cast_few)
    rows = ["a", "b", "a", None, "c", "a", "b"]
    parts = list(frames.to_wire(pa.record_batch({"a": pa.array(rows).dictionary_encode()})))
    assert [part.num_rows for part in parts] == [3, 2, 2]
    assert [value for part in parts for value in part.column(0).to_pylist()] == rows
