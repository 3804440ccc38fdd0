"""Commit data that no sink has staged: whoever can write to the checkpoint storage may have made them."""

from __future__ import annotations

import io
import random
import struct
import tracemalloc

import pyarrow as pa
import pytest
from arroyo_connectors import Mode
from arroyo_connectors.staged_streams import METADATA, DamagedCommitError, Staged
from arroyo_connectors.staging import StagedEpoch, StagedWriter

from arroyo_core.errors import ArroyoError, DataError, StateError

ROWS = pa.schema({"key": pa.string(), "n": pa.int64(), "tags": pa.list_(pa.string())})
CHANGES = ROWS.append(pa.field("_deleted", pa.bool_()))
UPSERT = b'{"mode": "upsert", "keys": ["key"]}'
APPEND = b'{"mode": "append"}'


def written(schema=ROWS, staged=APPEND, batches=None, *, compression="lz4"):
    """A stream as Arrow writes it, of whatever is asked for."""
    out = io.BytesIO()
    metadata = {} if staged is None else {METADATA: staged}
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(out, schema.with_metadata(metadata), options=options) as stream:
        for batch in [good_rows(schema)] if batches is None else batches:
            stream.write_batch(batch.replace_schema_metadata(metadata))
    return out.getvalue()


def good_rows(schema=ROWS, count=200):
    values = {
        "key": [f"k{place}" for place in range(count)],
        "n": list(range(count)),
        "tags": [["a", None, "b" * (place % 9)] for place in range(count)],
        "_deleted": [place % 3 == 0 for place in range(count)],
    }
    return pa.RecordBatch.from_pydict({name: values[name] for name in schema.names}, schema)


def read(*streams):
    epoch = StagedEpoch(dict(enumerate(streams)))
    return [batch.rows for batch in epoch.batches()]


def of(**columns):
    """A stream whose one batch has these columns."""
    batch = pa.RecordBatch.from_pydict(columns)
    return written(batch.schema, batches=[batch])


def nulls(count):
    """Without a byte."""
    return pa.Array.from_buffers(pa.null(), count, [None])


def test_what_a_sink_stages_is_read():
    (rows,) = read(written())
    assert rows.equals(good_rows())
    (rows,) = read(written(CHANGES, UPSERT))
    assert rows.equals(good_rows(CHANGES))


def test_a_row_of_append_may_have_a_column_that_is_called_as_the_mark_of_changes():
    writer = StagedWriter(CHANGES, Staged(mode=Mode.APPEND))
    writer.write(good_rows(CHANGES))
    epoch = StagedEpoch({0: writer.close()})
    assert epoch.rows == CHANGES
    assert [batch.rows.num_columns for batch in epoch.batches()] == [4]


@pytest.mark.parametrize(
    ("stream", "why"),
    [
        (b"no arrow at all", "are cut"),
        (b"\xff\xff\xff\xff\0\0\0\0", "are not rows"),
        (written(staged=None), "do not say how their rows change"),
        (written(staged=b"{"), "do not say how their rows change"),
        (written(staged=b"\xff"), "do not say how their rows change"),
        (written(staged=b'{"mode": "truncate"}'), "truncate"),
        (written(staged=b"[" * 100_000), "do not say how their rows change"),
        (written(CHANGES, b'{"mode": "upsert"}'), "changes without their key"),
        (written(CHANGES, b'{"mode": "upsert", "keys": ["x"]}'), "no column 'x'"),
        (written(CHANGES, b'{"mode": "upsert", "keys": ["_deleted"]}'), "no column '_deleted'"),
        (written(ROWS, UPSERT), "do not say which rows are deleted"),
        (
            written(pa.schema({"key": pa.string(), "_deleted": pa.int64()}), UPSERT, []),
            "do not say which rows are deleted",
        ),
        (of(d=pa.array(["a"]).dictionary_encode()), "no sink stages such"),
        (of(r=pa.RunEndEncodedArray.from_arrays([1], ["a"])), "no sink stages such"),
    ],
)
def test_streams_that_no_sink_stages_are_refused_before_anything_is_written(stream, why):
    with pytest.raises(DamagedCommitError, match=why):
        StagedEpoch({3: stream})


def test_two_columns_of_one_name_are_refused():
    batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(DamagedCommitError, match="two columns of one name"):
        StagedEpoch({0: written(batch.schema, batches=[batch])})


def test_the_subtask_and_who_may_have_done_it_are_said():
    with pytest.raises(DamagedCommitError, match=r"commit data of subtask 7 are cut.*nothing was committed"):
        StagedEpoch({7: written()[:-8]})


@pytest.mark.parametrize("other", [written(CHANGES, UPSERT), of(key=["a"])])
def test_subtasks_of_one_epoch_stage_alike(other):
    with pytest.raises(DamagedCommitError, match="two subtasks differ"):
        StagedEpoch({0: written(), 1: other})


def test_a_newer_version_is_named_as_such():
    with pytest.raises(StateError, match="newer arroyo-connectors"):
        StagedEpoch({0: written(staged=b'{"mode": "append", "version": 2}')})


def test_a_change_that_is_neither_is_refused():
    columns = [pa.array(["a"]), pa.array([None], pa.bool_())]
    batch = pa.RecordBatch.from_arrays(columns, names=["key", "_deleted"])
    with pytest.raises(DamagedCommitError, match="whether it is deleted"):
        read(written(batch.schema, UPSERT, [batch]))


def test_a_stream_that_was_cut_between_two_messages_is_not_taken_for_whole():
    whole = written(batches=[good_rows(), good_rows()])
    first = len(written(batches=[good_rows()])) - 8
    # Arrow itself reads one batch of it, and no more.
    assert pa.ipc.open_stream(whole[:first]).read_all().num_rows == 200
    with pytest.raises(DamagedCommitError, match="are cut"):
        read(whole[:first])


def claiming(size):
    """A stream whose first buffer says that it unpacks to so much."""
    stream = bytearray(of(n=list(range(100_000))[:50_000]))
    claim = struct.pack("<q", 50_000 * 8)
    assert stream.count(claim) >= 1
    at = stream.index(claim)
    stream[at : at + 8] = struct.pack("<q", size)
    return bytes(stream)


@pytest.mark.parametrize("size", [2**31, 2**40, 2**62])
def test_a_batch_that_says_to_be_huge_is_refused_before_memory_is_taken(size):
    with pytest.raises(DamagedCommitError, match="ARROYO_MAX_STAGED_BATCH_BYTES"):
        StagedEpoch({0: claiming(size)})


def test_a_bomb_is_refused_before_it_is_unpacked(monkeypatch):
    monkeypatch.setenv("ARROYO_MAX_STAGED_BATCH_BYTES", "8MiB")
    bomb = of(text=["a" * (16 << 20)])
    assert len(bomb) < 1 << 20
    before = pa.total_allocated_bytes()
    with pytest.raises(DamagedCommitError, match=r"too large: .* are too many: at most 8MiB"):
        StagedEpoch({0: bomb})
    assert pa.total_allocated_bytes() - before < 1 << 20


@pytest.mark.parametrize(
    "batch",
    [
        pa.RecordBatch.from_arrays([nulls(2**31 - 1)], names=["n"]),
        pa.RecordBatch.from_arrays([pa.array([0] * 65_537)], names=["n"]),
    ],
)
def test_rows_without_end_are_refused(batch):
    with pytest.raises(DamagedCommitError, match="rows in a batch"):
        read(written(batch.schema, batches=[batch]))


def test_values_that_take_no_bytes_are_counted():
    lists = pa.LargeListArray.from_arrays(pa.array([0, 2**31 - 1], pa.int64()), nulls(2**31 - 1))
    batch = pa.RecordBatch.from_arrays([lists], names=["n"])
    with pytest.raises(DamagedCommitError, match="too large"):
        read(written(batch.schema, batches=[batch]))


@pytest.mark.parametrize("offsets", [(0, 5, -1), (0, 5, 1 << 20), (0, 2**31 - 1, 11), (0, -9, 11), (7, 5, 11)])
def test_offsets_that_lead_out_of_a_batch_are_not_followed(offsets):
    batch = pa.RecordBatch.from_pydict({"t": ["abcde", "fghijk"]})
    whole = written(batch.schema, batches=[batch], compression=None)
    good = struct.pack("<3i", 0, 5, 11)
    assert whole.count(good) == 1
    with pytest.raises(DamagedCommitError):
        read(whole.replace(good, struct.pack("<3i", *offsets)))


def test_texts_that_are_none_are_refused():
    offsets = pa.array([0, 1], pa.int32()).buffers()[1]
    batch = pa.RecordBatch.from_arrays([pa.StringArray.from_buffers(1, offsets, pa.py_buffer(b"\xff"))], names=["t"])
    with pytest.raises(DamagedCommitError, match="UTF8"):
        read(written(batch.schema, batches=[batch]))


@pytest.mark.parametrize(
    "column",
    [
        pa.array([{"readable": 1}]),
        pa.array([[{"readable": 1}]]),
        pa.array([[({"readable": "b"}, 1)]], pa.map_(pa.struct([("readable", pa.string())]), pa.int64())),
        pa.array([None], pa.timestamp("us", "readable")),
    ],
)
def test_names_within_that_are_not_utf8_are_refused(column):
    batch = pa.RecordBatch.from_arrays([column], names=["x"])
    stream = written(batch.schema, batches=[batch]).replace(b"readable", b"read\xffble")
    with pytest.raises(DamagedCommitError, match="not UTF-8"):
        read(stream)


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_damaged_bytes_are_read_or_refused_with_our_error(compression):
    """Changed at random: a value may be another one, but whatever is read can be used."""
    chance = random.Random(20)
    whole = written(CHANGES, UPSERT, [good_rows(CHANGES, 40)] * 2, compression=compression)
    refused = 0
    tracemalloc.start()
    for _ in range(1500):
        data = bytearray(whole)
        for _ in range(chance.choice((1, 1, 2, 8))):
            data[chance.randrange(len(data))] = chance.choice((0, 1, 127, 255, chance.randrange(256)))
        if chance.random() < 0.2:
            del data[chance.randrange(len(data)) :]
        try:
            for rows in read(bytes(data)):
                rows.to_pylist()
        except ArroyoError:
            refused += 1
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert refused > 300
    assert peak < 256 << 20


def test_a_row_that_could_not_be_committed_is_refused_when_it_is_staged(monkeypatch):
    monkeypatch.setenv("ARROYO_MAX_STAGED_BATCH_BYTES", "8MiB")
    writer = StagedWriter(ROWS, Staged(mode=Mode.APPEND))
    writer.write(pa.RecordBatch.from_pylist([{"key": "a" * (9 << 20), "n": 1, "tags": None}], ROWS))
    with pytest.raises(DataError, match="a row is too large to wait for its commit"):
        writer.close()


def test_large_rows_among_small_ones_are_staged_apart(monkeypatch):
    monkeypatch.setenv("ARROYO_MAX_STAGED_BATCH_BYTES", "16MiB")
    texts = ["a" * (10 << 20), "b" * (10 << 20), *["c"] * 10_000]
    rows = pa.RecordBatch.from_pydict({"key": texts, "n": [1] * len(texts), "tags": [None] * len(texts)}, ROWS)
    writer = StagedWriter(ROWS, Staged(mode=Mode.APPEND))
    writer.write(rows)
    assert sum(batch.num_rows for batch in read(writer.close())) == len(texts)
