"""State of any size: what Arrow, Parquet or protobuf cannot hold in one piece is held in several."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arroyo_jobs.checkpoints.verification import Verifier
from hypothesis import given, settings
from hypothesis import strategies as st

from arroyo_core.api.schema import ArroyoSchema
from arroyo_core.errors import StateError
from arroyo_core.ids import FULL_KEY_RANGE, KeyRange
from arroyo_core.proto.state_pb2 import CheckpointMetadata, OperatorCheckpointMetadata, StateFile, TableType
from arroyo_core.state import (
    StorageProvider,
    chunks,
    commit_data,
    compaction,
    global_keyed_map,
    global_table_config,
)
from arroyo_core.state.codec import encode
from arroyo_core.state.config import KEY_HASH_COLUMN
from arroyo_core.state.inspection import summarize_checkpoints
from arroyo_core.state.protocol import referenced_paths

from .support.recording import DictDriver
from .support.small_arrow import SMALL_COMPACTION, shrink_arrow
from .support.state_job import NO_COMPACTION, Job, expiring_tables

NESTED = pa.struct([("items", pa.list_(pa.string())), ("pairs", pa.map_(pa.string(), pa.int64()))])
texts = st.text("ab", max_size=12)
nested = st.one_of(
    st.none(),
    st.fixed_dictionaries(
        {
            "items": st.one_of(st.none(), st.lists(texts, max_size=4)),
            "pairs": st.lists(st.tuples(texts, st.integers(0, 9)), max_size=2),
        }
    ),
)


@st.composite
def tables(draw):
    """Rows in several chunks, which are others in each column."""
    rows = draw(st.lists(st.tuples(st.one_of(st.none(), texts), nested), min_size=1, max_size=20))
    columns = []
    for index, kind in enumerate((pa.string(), NESTED)):
        values = [row[index] for row in rows]
        cuts = sorted({0, len(rows), *draw(st.lists(st.integers(0, len(rows)), max_size=4))})
        parts = [pa.array(values[start:end], kind) for start, end in pairwise(cuts)]
        columns.append(pa.chunked_array(parts, kind))
    return pa.table(columns, names=["text", "nested"])


@settings(max_examples=200)
@given(table=tables(), data=st.data(), limit=st.integers(1, 400))
def test_rows_are_the_same_in_any_chunks(table, data, limit):
    numbers = np.array(data.draw(st.lists(st.integers(0, table.num_rows - 1), max_size=30)), dtype=np.int64)
    rows = table.to_pylist()
    with pytest.MonkeyPatch.context() as patch:
        shrink_arrow(patch, limit)
        assert chunks.combine(table).to_pylist() == rows
        assert [row for part in chunks.cut_rows(table, limit) for row in part.to_pylist()] == rows
        for part in chunks.cut_rows(table, limit):
            assert part.nbytes <= limit or part.num_rows == 1
        for take in (chunks.take_rows, chunks.take_in_parts):
            taken = take(table, numbers)
            assert taken.to_pylist() == [rows[number] for number in numbers]
        assert chunks.one_chunk(chunks.take_column(table.column("text"), numbers)).to_pylist() == [
            rows[number]["text"] for number in numbers
        ]


def test_a_column_of_more_than_two_gibibytes_is_taken_from_and_joined():
    """The real limits, with one megabyte of memory that is in many chunks."""
    one = pa.table({"text": pa.array(["x" * 2**20], pa.string())})
    many = pa.concat_tables([one] * 2100)
    with pytest.raises(pa.ArrowInvalid, match="offset overflow"):
        many.take(pa.array([0, 2099]))
    assert chunks.take_rows(many, np.array([0, 2099])).num_rows == 2
    assert chunks.large_type(pa.list_(pa.struct([("text", pa.string())]))) == pa.large_list(
        pa.struct([("text", pa.large_string())])
    )


@pytest.mark.parametrize("wrap", [lambda lists: lists, lambda lists: pa.StructArray.from_arrays([lists], ["lists"])])
def test_lists_whose_offsets_overflow_without_a_word_are_found_out(wrap):
    """What Arrow gives when it takes five lists of 2^30 items: an array with offsets that went round."""
    items = pa.nulls(2**30)
    for count in (1, 5):
        offsets = (np.arange(count + 1) * 2**30).astype(np.int32)
        lists = pa.Array.from_buffers(pa.list_(pa.null()), count, [None, pa.py_buffer(offsets)], children=[items])
        assert chunks._has_overflowed(wrap(lists)) == (count == 5)


WIDE = ArroyoSchema(
    pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us", "UTC")), ("text", pa.string())]), "ts", ("k",)
)
UNKEYED = ArroyoSchema(WIDE.schema, "ts", None)


def wide_batch(rows):
    times = pa.array([5] * len(rows), pa.int64()).cast(pa.timestamp("us", "UTC"))
    keys, texts = [key for key, _ in rows], [text for _, text in rows]
    return pa.RecordBatch.from_arrays([pa.array(keys, pa.int64()), times, pa.array(texts)], schema=WIDE.schema)


def stored_files(job):
    return job.checkpoint.operators[0].table_checkpoint_metadata["t"].expiring_keyed_time.files


@pytest.mark.parametrize("schema", [WIDE, UNKEYED], ids=["one hot key", "no keys"])
def test_rows_of_one_hash_are_in_several_files_and_keep_their_order(schema, monkeypatch):
    shrink_arrow(monkeypatch)
    driver = DictDriver()
    job = Job(StorageProvider("dict://", driver=driver), expiring_tables("t", schema=schema), compaction=NO_COMPACTION)
    job.resume(1)
    rows = [(1, f"{number:03} {'x' * 40}") for number in range(60)]
    for start in range(0, 60, 20):
        view = (
            job.managers[0].get_expiring_time_key_table("t")
            if schema is UNKEYED
            else job.managers[0].get_key_time_table("t")
        )
        insert = view.insert_batch if schema is UNKEYED else view.insert
        insert(wide_batch(rows[start : start + 20]))
        job.take(None)
        assert len(stored_files(job)) > 5 * (start // 20 + 1)
        job.resume(1)
    for enabled in (False, True):
        if enabled:
            job.compaction = SMALL_COMPACTION
            job.resume(1)
            job.take(None)
            job.resume(1)
            assert {file.compaction_generation for file in stored_files(job)} == {1}
            assert all(file.memory_bytes <= 200 for file in stored_files(job))
        if schema is UNKEYED:
            found = job.managers[0].get_expiring_time_key_table("t").get_batches(5)
        else:
            found = [
                match.batch for match in job.managers[0].get_key_time_table("t").lookup_parts(wide_batch(rows[:1]))
            ]
        assert len(found) > 5
        assert [text for batch in found for text in batch.column("text").to_pylist()] == [text for _, text in rows]


def test_views_give_in_parts_what_one_batch_cannot_hold(monkeypatch):
    job = Job(StorageProvider("dict://", driver=DictDriver()), expiring_tables("t", schema=WIDE))
    job.resume(1)
    view = job.managers[0].get_key_time_table("t")
    rows = [(number % 3, f"{number:03} {'x' * 40}") for number in range(30)]
    view.insert(wide_batch(rows))
    whole = view.lookup(wide_batch(rows[:3]))
    shrink_arrow(monkeypatch)
    parts = list(view.lookup_parts(wide_batch(rows[:3])))
    assert len(parts) > 3
    assert np.concatenate([part.query_rows for part in parts]).tolist() == whole.query_rows.tolist()
    assert pa.Table.from_batches([part.batch for part in parts]).equals(pa.Table.from_batches([whole.batch]))
    found = [text for batch in view.get_all_parts() for text in batch.column("text").to_pylist()]
    assert sorted(found) == sorted(text for _, text in rows)


def test_last_rows_come_in_parts_with_nulls_for_keys_that_are_not_there(monkeypatch):
    tables = expiring_tables("t", schema=WIDE, generational=True)
    job = Job(StorageProvider("dict://", driver=DictDriver()), tables)
    job.resume(1)
    view = job.managers[0].get_last_key_value_table("t")
    assert [part.to_pylist() for part in view.get_aligned_parts(wide_batch([(1, "")]))] == [
        [{"k": None, "ts": None, "text": None}]
    ]
    view.upsert(wide_batch([(number, f"{number:03} {'x' * 40}") for number in range(5, 30)]))
    for asked in ([*range(40)], [7, 50, 51], [*range(50, 60), 9, *range(60, 70)], [*range(29, 4, -1), 99]):
        keys = wide_batch([(number, "") for number in asked])
        whole = pa.Table.from_batches([view.get_aligned(keys)])
        is_there, rows = view.get(keys)
        with monkeypatch.context() as patch:
            shrink_arrow(patch)
            parts = list(view.get_aligned_parts(keys))
            pairs = list(view.get_parts(keys))
        assert pa.Table.from_batches(parts).equals(whole)
        assert np.concatenate([mask for mask, _ in pairs]).tolist() == is_there.tolist()
        assert all(mask.sum() == found.num_rows for mask, found in pairs)
        assert pa.Table.from_batches([found for _, found in pairs]).equals(pa.Table.from_batches([rows]))
        assert all(part.nbytes <= 700 for part in (*parts, *(found for _, found in pairs)))


def test_rows_of_a_hot_key_are_not_copied_to_be_read():
    job = Job(StorageProvider("dict://", driver=DictDriver()), expiring_tables("t", schema=WIDE))
    job.resume(1)
    view = job.managers[0].get_key_time_table("t")
    view.insert(wide_batch([(1, f"{number:03}") for number in range(30)] + [(2, "other")]))
    found = [view.lookup(wide_batch([(1, "")])).batch for _ in range(2)]
    assert found[0].column("text").to_pylist() == [f"{number:03}" for number in range(30)]
    first, second = (batch.column("text").buffers()[2].address for batch in found)
    assert first == second


def test_too_much_for_one_batch_is_said_so():
    big = pa.chunked_array([pa.array(["x" * 2**20])] * 2100)
    rows = pa.table([pa.nulls(2100, pa.int64()), pa.nulls(2100, pa.timestamp("us", "UTC")), big], schema=WIDE.schema)
    job = Job(StorageProvider("dict://", driver=DictDriver()), expiring_tables("t", schema=WIDE))
    job.resume(1)
    with pytest.raises(StateError, match=r"table 't': 2100 rows were asked for at once, which take 22\d+ bytes"):
        job.managers[0].get_key_time_table("t")._format.decode(rows)


def test_row_groups_are_bounded_by_bytes(monkeypatch):
    shrink_arrow(monkeypatch, 1000)
    driver = DictDriver()
    job = Job(StorageProvider("dict://", driver=driver), expiring_tables("t", schema=WIDE), compaction=NO_COMPACTION)
    monkeypatch.setattr(compaction, "MAX_FILE_BYTES", 10**6)
    for name in ("PART_BYTES", "MAX_FILE_BYTES"):
        monkeypatch.setattr(f"arroyo_core.state.expiring_time_key_map.{name}", 10**6)
    job.resume(1)
    job.managers[0].get_key_time_table("t").insert(wide_batch([(key, "x" * 100) for key in range(100)]))
    job.take(None)
    [file] = stored_files(job)
    metadata = pq.ParquetFile(pa.BufferReader(driver.read(file.path))).metadata
    groups = [metadata.row_group(index).num_rows for index in range(metadata.num_row_groups)]
    assert sum(groups) == 100
    assert max(groups) <= 10


def file(low, high, *, memory=0, size=100, start=0, end=FULL_KEY_RANGE.end):
    return StateFile(
        min_key_hash=low,
        max_key_hash=high,
        memory_bytes=memory,
        size_bytes=size,
        live_key_start=start,
        live_key_end=end,
    )


@given(
    spans=st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1)), max_size=5),
    memory=st.integers(0, 10**9),
    max_bytes=st.integers(10**7, 10**9),
)
def test_slices_cover_what_is_live_once_and_in_order(spans, memory, max_bytes):
    key_range = KeyRange(2**62, 2**63)
    found = [file(min(span), max(span), memory=memory) for span in spans]
    ranges = compaction.slice_key_ranges(found, key_range, max_bytes=max_bytes)
    for one, other in pairwise(ranges):
        assert one.start <= one.end
        assert one.end + 1 == other.start
    for each in found:
        start, end = max(each.min_key_hash, key_range.start), min(each.max_key_hash, key_range.end)
        if start <= end:
            assert ranges[0].start <= start
            assert end <= ranges[-1].end
    assert all(key_range.start <= each.start and each.end <= key_range.end for each in ranges)


def test_files_that_do_not_say_what_they_take_in_memory_are_guessed():
    assert compaction.memory_bytes(file(0, 1, memory=7)) == 7
    assert compaction.memory_bytes(file(0, 1, size=100)) == 400


def test_a_merge_in_slices_reads_a_cold_file_by_row_groups(monkeypatch):
    shrink_arrow(monkeypatch, 1000)
    monkeypatch.setattr("arroyo_core.state.files.WHOLE_READ_BYTES", 0)
    job = Job(
        StorageProvider("dict://", driver=DictDriver()), expiring_tables("t", schema=WIDE), compaction=NO_COMPACTION
    )
    for name in ("PART_BYTES", "MAX_FILE_BYTES"):
        monkeypatch.setattr(f"arroyo_core.state.expiring_time_key_map.{name}", 10**6)
    job.resume(1)
    for _ in range(2):
        job.managers[0].get_key_time_table("t").insert(wide_batch([(key, "x" * 100) for key in range(100)]))
        job.take(None)
    table = job.open_at(job.checkpoint, 1)[0]._tables["t"]
    slices = list(compaction.merge_slices(table, table.carried, is_oldest=True, max_bytes=5000))
    assert len(slices) > 3
    assert table.access.counts.row_groups_read < 2 * 20 + 2 * 2 * len(slices)
    whole = compaction.merge_files(table, table.carried, is_oldest=True)
    assert pa.concat_tables(slices).equals(whole.combine_chunks() if whole.column(0).num_chunks == 1 else whole)
    hashes = pa.concat_tables(slices).column(KEY_HASH_COLUMN).to_numpy()
    assert (hashes[:-1] <= hashes[1:]).all()


COMMITS = global_table_config("c", "commits", uses_two_phase_commit=True)


def commit_job(driver):
    job = Job(StorageProvider("dict://", driver=driver), COMMITS)
    job.resume(2)
    job.managers[0].insert_committing_data("c", b"x" * 5000)
    job.managers[1].insert_committing_data("c", b"small")
    return job


def test_large_commit_data_is_staged_in_a_file_and_counted(monkeypatch):
    monkeypatch.setattr(global_keyed_map, "MAX_INLINE_BYTES", 100)
    driver = DictDriver()
    job = commit_job(driver)
    checkpoint = job.take(None, needs_commit=True)
    [path] = referenced_paths(checkpoint)
    assert path.startswith("job/checkpoints/1/commit-op-c-0-")
    assert driver.files[path] == b"x" * 5000
    assert checkpoint.ByteSize() < 1000
    [operator] = checkpoint.operators
    assert operator.bytes == 5005
    assert commit_data(operator, job.storage) == {"c": {0: b"x" * 5000, 1: b"small"}}
    with pytest.raises(StateError, match="give the storage"):
        commit_data(operator)
    [summary] = summarize_checkpoints(job.backend)
    assert (summary.bytes_written, summary.bytes_live) == (5005, 5005)
    verdict = Verifier(job.backend).verify(1)
    assert (verdict.files, verdict.problems) == (1, ())


@pytest.mark.parametrize(("damage", "message"), [(None, "is missing"), (b"y" * 5000, "checksum"), (b"y", "1 bytes")])
def test_damage_of_staged_commit_data_is_found(monkeypatch, damage, message):
    monkeypatch.setattr(global_keyed_map, "MAX_INLINE_BYTES", 100)
    driver = DictDriver()
    job = commit_job(driver)
    checkpoint = job.take(None, needs_commit=True)
    [path] = referenced_paths(checkpoint)
    if damage is None:
        del driver.files[path]
    else:
        driver.files[path] = damage
    with pytest.raises(StateError, match=message):
        commit_data(checkpoint.operators[0], job.storage)
    problems = Verifier(job.backend).verify(1).problems
    assert message in problems[0]
    if damage is None or len(damage) < 5000:
        with pytest.raises(StateError):
            job.backend.prepare_checkpoint_load(checkpoint)


def test_staged_files_live_as_long_as_their_epoch(monkeypatch):
    monkeypatch.setattr(global_keyed_map, "MAX_INLINE_BYTES", 100)
    driver = DictDriver()
    job = commit_job(driver)
    job.take(None, needs_commit=True)
    driver.files["job/checkpoints/1/commit-op-c-0-dead.staged"] = b"of an attempt that died"
    job.take(None)
    job.clean(2)
    assert sum(path.endswith(".staged") for path in driver.files) == 1
    job.clean(1)
    assert not [path for path in driver.files if path.endswith(".staged")]


def test_metadata_that_would_be_too_large_is_refused_with_what_takes_the_most(monkeypatch):
    job = Job(StorageProvider("dict://", driver=DictDriver()), expiring_tables("t"))
    operator = OperatorCheckpointMetadata()
    operator.operator_metadata.operator_id = "wide"
    table = operator.table_checkpoint_metadata["rows"]
    table.table_type = TableType.EXPIRING_KEYED_TIME_TABLE
    files = table.expiring_keyed_time.files
    for number in range(50):
        files.add(path=f"job/checkpoints/1/table-{number}", checksum=bytes(32))
    monkeypatch.setenv("ARROYO_MAX_METADATA_BYTES", "1000")
    with pytest.raises(
        StateError, match=r"largest tables are wide.rows \(\d+ bytes, 50 files\).*lower the parallelism"
    ):
        job.backend.publish(CheckpointMetadata(job_id="job", epoch=1, operators=[operator]))


def test_a_value_that_no_array_holds_is_refused(monkeypatch):
    monkeypatch.setattr("arroyo_core.state.codec.MAX_ENCODED_BYTES", 100)
    with pytest.raises(StateError, match="table 't' cannot hold a value of 203 bytes: at most 100"):
        encode("x" * 201, table="t", what="value")
