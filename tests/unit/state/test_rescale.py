"""Restoring at another parallelism reads only what overlaps; facts and references stay exact."""

from __future__ import annotations

from itertools import pairwise

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arroyo_core.errors import StateError
from arroyo_core.ids import KeyRange, key_range
from arroyo_core.proto.state_pb2 import StateFile
from arroyo_core.state import CompactionPolicy, StorageProvider, expiring_time_key_map, files, global_table_config
from arroyo_core.state.compaction import choose_files, split_by_key_range
from arroyo_core.state.config import KEY_HASH_COLUMN
from arroyo_core.state.live_files import carry_forward, merge_references

from .support.state_job import NO_COMPACTION, Job, batch_of, expiring_tables, rows_of

TOP = 2**64 - 1


@pytest.fixture
def storage(tmp_path):
    return StorageProvider(str(tmp_path))


def fill(job: Job, rows: int) -> None:
    batch = batch_of([(key, 5, key) for key in range(rows)])
    for manager, part in zip(job.managers, job.split(batch), strict=True):
        manager.get_key_time_table("t").insert(part)


def test_only_overlapping_files_are_opened_and_only_overlapping_row_groups_read(storage, monkeypatch):
    monkeypatch.setattr(files, "ROW_GROUP_ROWS", 100)
    monkeypatch.setattr(files, "WHOLE_READ_BYTES", 0)
    job = Job(storage, expiring_tables("t"), compaction=NO_COMPACTION)
    job.resume(2)
    fill(job, 10_000)
    job.take(None)
    found = []
    for manager in job.open_at(job.checkpoint, 8):
        found.extend(rows_of(manager.get_key_time_table("t").get_all()))
        counts = manager.read_counts
        assert counts.files_opened == 1
        # 50 row groups in each of two files; an eighth of the keys, and one group at each end cut through.
        assert 12 <= counts.row_groups_read <= 15
    assert sorted(found) == [(key, 5, key) for key in range(10_000)]


def test_a_large_change_is_written_in_files_of_disjoint_key_ranges(storage, monkeypatch):
    monkeypatch.setattr(expiring_time_key_map, "PART_BYTES", 100_000)
    job = Job(storage, expiring_tables("t"), compaction=NO_COMPACTION)
    job.resume(1)
    fill(job, 10_000)
    job.take(None)
    [operator] = job.checkpoint.operators
    written = operator.table_checkpoint_metadata["t"].expiring_keyed_time.files
    assert sum(file.rows for file in written) == 10_000
    assert len(written) > 3
    assert all(former.max_key_hash < file.min_key_hash for former, file in pairwise(written))


def test_scaling_in_reads_each_file_whole_and_once(storage):
    job = Job(storage, expiring_tables("t"), compaction=NO_COMPACTION)
    job.resume(4)
    fill(job, 1000)
    job.take(None)
    [manager] = job.open_at(job.checkpoint, 1)
    assert manager.get_key_time_table("t").get_all().num_rows == 1000
    assert manager.read_counts.files_opened == 4


def test_a_table_that_nobody_asks_for_is_carried_forward_unread(storage):
    job = Job(storage, expiring_tables("t"), compaction=NO_COMPACTION)
    job.resume(2)
    fill(job, 100)
    job.take(None)
    job.resume(3)
    job.take(None)
    assert [manager.read_counts.files_opened for manager in job.managers] == [0, 0, 0]
    before, after = (job.backend.load_operator_metadata("job", "op", epoch) for epoch in (1, 2))
    paths = [[f.path for f in o.table_checkpoint_metadata["t"].expiring_keyed_time.files] for o in (before, after)]
    assert paths[0] == paths[1]


def test_a_key_that_another_subtask_owns_is_refused(storage):
    job = Job(storage, expiring_tables("t"))
    job.resume(2)
    stray = next(part for part in job.split(batch_of([(key, 5, key) for key in range(20)]))[1:])
    job.managers[0].get_key_time_table("t").insert(stray)
    with pytest.raises(StateError, match=r"subtask 0 of 2 that belong to other subtasks: its key columns \(k\)"):
        job.take(None)


def test_duckdb_reads_the_files_of_a_checkpoint(storage, tmp_path):
    job = Job(storage, expiring_tables("t"), compaction=NO_COMPACTION)
    job.resume(2)
    fill(job, 100)
    job.take(None)
    found = duckdb.sql(
        f"select k, epoch_us(ts) as t, v from '{tmp_path}/job/checkpoints/1/table-op-t-*.parquet' "
        "where _operation = 0 order by k"
    ).fetchall()
    assert found == [(key, 5, key) for key in range(100)]


def test_files_record_their_version_sorting_and_statistics(storage, tmp_path):
    import pyarrow.parquet as pq

    job = Job(storage, global_table_config("g", "x"))
    job.resume(1)
    job.managers[0].get_global_keyed_state("g").insert("a", 1)
    job.take(None)
    [path] = tmp_path.glob("job/checkpoints/1/*.parquet")
    metadata = pq.ParquetFile(path).metadata
    assert metadata.metadata[b"version"] == b"0"
    assert metadata.row_group(0).column(0).compression == "ZSTD"
    hash_column = next(c for c in range(metadata.num_columns) if metadata.schema.column(c).name == KEY_HASH_COLUMN)
    assert metadata.row_group(0).column(hash_column).statistics.has_min_max


def file(path, low, high, *, epoch=1, max_ts=None, deletes=0, size=100, generation=0, version=0):
    return StateFile(
        path=path,
        min_key_hash=low,
        max_key_hash=high,
        live_key_start=0,
        live_key_end=TOP,
        epoch=epoch,
        max_timestamp_us=max_ts,
        min_timestamp_us=max_ts,
        delete_rows=deletes,
        size_bytes=size,
        compaction_generation=generation,
        state_version=version,
    )


@given(
    before=st.integers(1, 9),
    after=st.integers(1, 9),
    spans=st.lists(st.tuples(st.integers(0, TOP), st.integers(0, TOP)), min_size=1, max_size=5),
)
def test_every_hash_of_a_file_is_carried_exactly_once_at_any_parallelism(before, after, spans):
    found = [file(f"f{i}", min(span), max(span), epoch=i + 1) for i, span in enumerate(spans)]
    for parallelism in (before, after):
        parts = [
            part
            for index in range(parallelism)
            for part in carry_forward(found, key_range=key_range(index, parallelism))
        ]
        for original in found:
            ranges = sorted(
                (max(p.live_key_start, p.min_key_hash), min(p.live_key_end, p.max_key_hash))
                for p in parts
                if p.path == original.path
            )
            assert ranges[0][0] == original.min_key_hash
            assert ranges[-1][1] == original.max_key_hash
            assert all(left[1] + 1 == right[0] for left, right in pairwise(ranges))
        found = merge_references(parts)
        assert len(found) == len(spans)


def test_a_file_wholly_past_retention_is_dropped():
    kept = carry_forward(
        [file("old", 0, 9, max_ts=9), file("new", 0, 9, epoch=2, max_ts=10)],
        key_range=KeyRange(0, TOP),
        cutoff_us=10,
    )
    assert [f.path for f in kept] == ["new"]


def test_deletes_outlive_retention_while_they_hide_older_rows():
    older, deletes = file("older", 0, 9, max_ts=50), file("deletes", 0, 9, epoch=2, max_ts=1, deletes=3)
    everything = KeyRange(0, TOP)
    assert [f.path for f in carry_forward([older, deletes], key_range=everything, cutoff_us=10)] == ["older", "deletes"]
    assert [f.path for f in carry_forward([older, deletes], key_range=everything, cutoff_us=60)] == []
    apart = file("apart", 10, 19, epoch=2, max_ts=1, deletes=3)
    assert [f.path for f in carry_forward([older, apart], key_range=everything, cutoff_us=10)] == ["older"]


POLICY = CompactionPolicy(fan_in=4, level_bytes=1000)


def test_few_runs_are_left_alone():
    assert choose_files([file(f"f{i}", 0, 9, epoch=i) for i in range(3)], POLICY) == []


def test_small_neighbours_are_merged_and_the_large_run_is_not():
    large = file("large", 0, 9, epoch=1, size=100_000)
    small = [file(f"f{i}", 0, 9, epoch=i + 2) for i in range(4)]
    assert choose_files([large, *small], POLICY) == small


def test_a_large_run_is_not_rewritten_for_a_few_small_ones():
    large = file("large", 0, 9, epoch=1, size=100_000)
    middle = file("middle", 0, 9, epoch=2, size=5_000)
    small = [file(f"f{i}", 0, 9, epoch=i + 3) for i in range(3)]
    assert choose_files([large, middle, *small], POLICY) == []


def test_runs_of_another_version_are_not_merged_together():
    mixed = [file(f"f{i}", 0, 9, epoch=i, version=i // 3) for i in range(6)]
    assert choose_files(mixed, POLICY) == []


def test_a_full_level_takes_what_lies_below_it_along():
    mixed = [file(f"f{i}", 0, 9, epoch=i, size=2000) for i in range(4)] + [file("s", 0, 9, epoch=9)]
    assert choose_files(mixed, POLICY) == mixed


@given(sizes=st.lists(st.integers(1, 10**9), max_size=40))
def test_the_choice_is_a_slice_of_neighbours_and_ends_with_few_runs(sizes):
    found = [file(f"f{i}", 0, 9, epoch=i, size=size) for i, size in enumerate(sizes)]
    for _ in range(100):
        chosen = choose_files(found, POLICY)
        if not chosen:
            break
        start = found.index(chosen[0])
        assert found[start : start + len(chosen)] == chosen
        merged = file("m", 0, 9, epoch=chosen[-1].epoch, size=sum(f.size_bytes for f in chosen), generation=1)
        found[start : start + len(chosen)] = [merged]
    levels = len({choose_level(f.size_bytes) for f in found})
    assert len(found) < POLICY.fan_in * max(1, levels)


def choose_level(size):
    level = 0
    while size > POLICY.level_bytes * POLICY.fan_in**level:
        level += 1
    return level


def test_a_split_never_parts_rows_of_one_hash():
    hashes = np.array([1, 1, 1, 2, 3, 3, 4], dtype=np.uint64)
    parts = split_by_key_range(pa.table({KEY_HASH_COLUMN: hashes}), 2)
    assert [part.column(KEY_HASH_COLUMN).to_pylist() for part in parts] == [[1, 1, 1], [2, 3, 3], [4]]
